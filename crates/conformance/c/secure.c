/* Says whether it has rights that its caller has not, and whether it has mapped the file named "board". */
#include "check.h"
#include <sys/auxv.h>

int main(void)
{
    char line[1000];
    bool has_board = false;
    FILE *maps = fopen("/proc/self/maps", "r");
    CHECK(maps != NULL);
    while (fgets(line, sizeof line, maps))
        has_board |= strstr(line, "/board\n") != NULL;
    fclose(maps);
    printf("secure %d board %d\n", getauxval(AT_SECURE) != 0, has_board);
    return 0;
}
