// The recipe of etcd's own Go client (go.etcd.io/etcd/client/v3/concurrency), as a program that compare.py
// measures beside lockstead-cluster.
//
//	recipe ENDPOINTS pairs TURNS            times of TURNS uncontended pairs
//	recipe ENDPOINTS handover CLIENTS EACH  CLIENTS sessions that take turns, EACH so many
//	recipe ENDPOINTS hold NAME TTL          says what happens, a line each; does what standard input says
//
// Times are nanoseconds, one a line.
package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "recipe:", err)
		os.Exit(1)
	}
}

// open makes a client and a session of its own, as a program on a host of its own has them.
func open(endpoints string, ttl int) *concurrency.Session {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: strings.Split(endpoints, ","), DialTimeout: 10 * time.Second, Logger: zap.NewNop(),
	})
	fail(err)
	session, err := concurrency.NewSession(client, concurrency.WithTTL(ttl))
	fail(err)
	return session
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	fail(err)
	return value
}

func pairs(endpoints string, turns int) {
	mutex := concurrency.NewMutex(open(endpoints, 30), "recipe/pairs")
	ctx := context.Background()
	for turn := 0; turn < turns; turn++ {
		begun := time.Now()
		fail(mutex.Lock(ctx))
		fail(mutex.Unlock(ctx))
		fmt.Println(time.Since(begun).Nanoseconds())
	}
}

// handover prints the times from one owner to the next, in order of time.
func handover(endpoints string, clients, each int) {
	sessions := make([]*concurrency.Session, clients)
	for client := range sessions {
		sessions[client] = open(endpoints, 30)
	}
	owned := make([][]time.Time, clients)
	var ready, all sync.WaitGroup
	ready.Add(clients)
	all.Add(clients)
	fmt.Println("ready")
	fmt.Scanln()
	for client := range sessions {
		go func() {
			defer all.Done()
			mutex := concurrency.NewMutex(sessions[client], "recipe/handover")
			ready.Done()
			ready.Wait()
			for turn := 0; turn < each; turn++ {
				fail(mutex.Lock(context.Background()))
				owned[client] = append(owned[client], time.Now())
				fail(mutex.Unlock(context.Background()))
			}
		}()
	}
	all.Wait()
	var times []time.Time
	for _, some := range owned {
		times = append(times, some...)
	}
	sort.Slice(times, func(a, b int) bool { return times[a].Before(times[b]) })
	for at := 1; at < len(times); at++ {
		fmt.Println(times[at].Sub(times[at-1]).Nanoseconds())
	}
}

// hold asks for the lock, says "in" or why not, and then carries out lines: "write" puts a key by a transaction
// that compares the owner's key; "blind" puts one without; "look" says whether the session knows of its end;
// "release" releases.
func hold(endpoints, name string, ttl int) {
	session := open(endpoints, ttl)
	mutex := concurrency.NewMutex(session, name)
	fmt.Println("asks")
	if err := mutex.Lock(context.Background()); err != nil {
		fmt.Println("not in:", err)
		return
	}
	client := session.Client()
	kept, err := client.Get(context.Background(), mutex.Key())
	fail(err)
	fmt.Printf("in, its key is there: %v\n", len(kept.Kvs) > 0)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		switch lines.Text() {
		case "write":
			answer, err := client.Txn(ctx).If(mutex.IsOwner()).Then(clientv3.OpPut("written/"+name, "late")).Commit()
			fail(err)
			fmt.Printf("guarded write carried out: %v\n", answer.Succeeded)
		case "look":
			select {
			case <-session.Done():
				fmt.Println("session says it is over: true")
			default:
				fmt.Println("session says it is over: false")
			}
		case "release":
			fmt.Println("release:", mutex.Unlock(ctx))
		}
		cancel()
	}
}

func main() {
	words := os.Args[1:]
	switch {
	case len(words) == 3 && words[1] == "pairs":
		pairs(words[0], number(words[2]))
	case len(words) == 4 && words[1] == "handover":
		handover(words[0], number(words[2]), number(words[3]))
	case len(words) == 4 && words[1] == "hold":
		hold(words[0], words[2], number(words[3]))
	default:
		fmt.Fprintln(os.Stderr, "usage: recipe ENDPOINTS pairs TURNS | handover CLIENTS EACH | hold NAME TTL")
		os.Exit(2)
	}
}
