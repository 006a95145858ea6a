/* For Ichor's realtime example: it finds no switch for simultaneous multithreading. It would turn that off for the whole machine while it
 * runs, and it ends where there is a switch that cannot be turned. Used with LD_PRELOAD, so that the program stays what its authors wrote. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

typedef int call(const char *, void *);

static int looked_at(const char *name, const char *path, void *found)
{
    if (strcmp(path, "/sys/devices/system/cpu/smt/control") == 0) {
        errno = ENOENT;
        return -1;
    }
    return ((call *)dlsym(RTLD_NEXT, name))(path, found);
}

int stat(const char *path, void *found) { return looked_at("stat", path, found); }
int stat64(const char *path, void *found) { return looked_at("stat64", path, found); }
