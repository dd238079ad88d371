/* Making, opening and describing segments. */
#include "bank.h"
#include <fcntl.h>
#include <sys/stat.h>

static int fills;

static void count_fills(void *root, void *argument)
{
    EXPECT(root != NULL && argument == &fills);
    fills++;
}

static const lks_shm_type bytes = LKS_SHM_BYTES(64);

/* Each description that is none, with a word of the reason. */
static void refused(void)
{
    static const lks_shm_field at_4 = {"lock", 4, &lks_shm_mutex};
    static const lks_shm_field at_0 = {"lock", 0, &lks_shm_mutex};
    static const lks_shm_type unaligned = {LKS_SHM_STRUCT, "S", 16, 8, 1, 0, NULL, &at_4};
    static const lks_shm_type too_long = {LKS_SHM_STRUCT, "S", 4, 4, 1, 0, NULL, &at_0};
    static const lks_shm_type nameless = {LKS_SHM_PLAIN, NULL, 4, 4, 0, 0, NULL, NULL};
    static const lks_shm_type unknown = {9, "x", 4, 4, 0, 0, NULL, NULL};
    static const lks_shm_type empty = {LKS_SHM_ARRAY, NULL, 8, 8, 1, 8, NULL, NULL};
    static const lks_shm_type crooked = {LKS_SHM_ARRAY, NULL, 24, 8, 2, 8, &lks_shm_u64, NULL};
    static const lks_shm_type odd = {LKS_SHM_PLAIN, "x", 4, 3, 0, 0, NULL, NULL};
    static const lks_shm_type escape = {LKS_SHM_PLAIN, "\x1b[2J", 4, 4, 0, 0, NULL, NULL};
    static lks_shm_field endless_fields[2] = {{"a", 0, NULL}, {"b", 0, NULL}};
    static lks_shm_type endless = {LKS_SHM_STRUCT, "E", 8, 8, 2, 0, NULL, NULL};
    const lks_shm_type *none[] = {&unaligned, &too_long, &nameless, &unknown, &empty,
                                  &crooked,   &odd,      &escape,   &endless, NULL};
    lks_shm_segment *segment;
    endless_fields[0].type = endless_fields[1].type = &endless;
    endless.fields = endless_fields;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        segment = (lks_shm_segment *)&segment;
        EXPECT(lks_shm_memfd(&segment, "none", none[i], NULL) == -EINVAL && segment == NULL);
        EXPECT(strstr(lks_shm_reason(), "no such segment: "));
    }
    lks_shm_options options = LKS_SHM_OPTIONS_INIT;
    options.participants = 0;
    EXPECT(lks_shm_memfd(&segment, "none", &bytes, &options) == -EINVAL);
    EXPECT(strstr(lks_shm_reason(), "participants"));
    options.participants = 1;
    options.flags = 2;
    EXPECT(lks_shm_memfd(&segment, "none", &bytes, &options) == -EINVAL);
    EXPECT(lks_shm_open(&segment, NULL, NULL) == -EINVAL);
    EXPECT(lks_shm_from_fd(&segment, -1, NULL) == -EBADF && segment == NULL);
    EXPECT(lks_shm_from_fd(&segment, 999, NULL) == -EBADF);
    EXPECT(lks_shm_from_fd(&segment, 0, NULL) < 0 && segment == NULL);
}

static void *take_part(void *segment)
{
    return (void *)(intptr_t)lks_shm_participate((lks_shm_segment *)segment);
}

static void named(const char *path)
{
    lks_shm_segment *segment, *same;
    struct stat about;
    lks_shm_options options = LKS_SHM_OPTIONS_INIT;
    options.participants = 2;
    options.mode = 0640;
    options.fill = count_fills;
    options.argument = &fills;
    umask(077);
    EXPECT(lks_shm_open(&segment, path, NULL) == -ENOENT);
    OPENED(lks_shm_create(&segment, path, &bank_type, &options));
    EXPECT(fills == 1 && stat(path, &about) == 0 && (about.st_mode & 0777) == 0640);
    EXPECT(lks_shm_create(&same, path, &bank_type, &options) == -EEXIST && same == NULL);
    fills = 1;
    OPENED(lks_shm_open_or_create(&same, path, &bank_type, &options));
    EXPECT(lks_shm_root(same) != lks_shm_root(segment) && fills == 1);
    EXPECT(lks_shm_size(same) == sizeof(struct bank));
    /* One thread has two slots here, one for each mapping; a third one there is not. */
    OPENED(lks_shm_participate(segment));
    OPENED(lks_shm_participate(same));
    EXPECT((intptr_t)join(start(take_part, segment)) == -EUSERS);
    EXPECT(lks_shm_leave(same) == 0);
    EXPECT(join(start(take_part, segment)) == NULL);
    EXPECT(lks_shm_close(same) == 0);

    OPENED(lks_shm_open(&same, path, NULL));
    EXPECT(lks_shm_close(same) == 0);
    OPENED(lks_shm_from_fd(&same, lks_shm_fd(segment), &bank_type));
    EXPECT(lks_shm_close(same) == 0);
    EXPECT(lks_shm_open(&same, path, &bytes) == -EPROTO);
    EXPECT(strstr(lks_shm_reason(), "`root` is struct Bank"));
    EXPECT(truncate(path, 8192) == 0);
    EXPECT(lks_shm_open(&same, path, NULL) == -EBADMSG);
    EXPECT(strstr(lks_shm_reason(), "was cut"));
    EXPECT(lks_shm_survive_cuts() == 0);
    struct bank *bank = (struct bank *)lks_shm_root(segment);
    EXPECT(lks_shared_mutex_lock(&bank->accounts[ACCOUNTS - 1].lock) == -ENOTRECOVERABLE);
    EXPECT(unlink(path) == 0);
}

int main(int count, char **arguments)
{
    EXPECT(count == 2);
    EXPECT(*lks_shm_reason() == 0);
    refused();
    named(arguments[1]);
    return 0;
}
