/* Prints the number of executable mappings of Vellum's library. */
#include <stdio.h>
#include <string.h>
#include HEADER
int main(void)
{
    void *volatile use = USE;
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[4096];
    int copies = 0;
    while (fgets(line, sizeof line, maps))
        copies += strstr(line, " r-xp ") && strstr(line, "/libvellum.so");
    printf("%d\n", use ? copies : -1);
    return 0;
}
