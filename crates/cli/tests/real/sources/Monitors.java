// Monitors, locks, pools, a collection of garbage, signals and a child process.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.ReentrantLock;

public class Monitors {
    static final Object monitor = new Object();
    static int count;
    static long counted;

    public static void main(String[] arguments) throws Exception {
        ReentrantLock lock = new ReentrantLock();
        Thread[] threads = new Thread[6];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int k = 0; k < 20000; k++) {
                    synchronized (monitor) {
                        count++;
                    }
                    lock.lock();
                    counted++;
                    lock.unlock();
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.println(count + " " + counted);
        ExecutorService pool = Executors.newFixedThreadPool(4);
        List<Future<Integer>> squares = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            int n = i;
            squares.add(pool.submit(() -> n * n));
        }
        int sum = 0;
        for (Future<Integer> square : squares) {
            sum += square.get();
        }
        pool.shutdown();
        System.out.println(sum);
        ArrayBlockingQueue<Integer> queue = new ArrayBlockingQueue<>(2);
        new Thread(() -> {
            for (int i = 1; i <= 1000; i++) {
                try {
                    queue.put(i);
                } catch (InterruptedException end) {
                    return;
                }
            }
        }).start();
        long taken = 0;
        for (int i = 0; i < 1000; i++) {
            taken += queue.take();
        }
        System.out.println(taken);
        byte[][] garbage = new byte[50][];
        for (int i = 0; i < 5000; i++) {
            garbage[i % 50] = new byte[20000];
        }
        System.gc();
        Process child = new ProcessBuilder("sh", "-c", "echo child; exit 9").inheritIO().start();
        System.out.println(child.waitFor());
        try {
            int[] none = arguments.length == 0 ? null : new int[1];
            none[0] = 1;
        } catch (NullPointerException caught) {
            System.out.println("null");
        }
        try {
            deeper(0);
        } catch (StackOverflowError caught) {
            System.out.println("deep");
        }
        System.exit(6);
    }

    static int deeper(int depth) {
        return deeper(depth + 1) + 1;
    }
}
