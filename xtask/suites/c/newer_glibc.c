/* What the Protobuf conformance runner takes from a glibc newer than 2.37, for a system whose glibc is older. To the
 * runner, the C23 forms of strtol and its like (which also read binary digits behind 0b) are as good as the old ones. */
#include <stdlib.h>

#define C23_FORM(type, name) \
    type __isoc23_##name(const char *text, char **end, int base) { return name(text, end, base); }

C23_FORM(long, strtol)
C23_FORM(unsigned long, strtoul)
C23_FORM(long long, strtoll)
C23_FORM(unsigned long long, strtoull)

/* An older libstdc++ initialises its streams elsewhere. */
void _ZSt21ios_base_library_initv(void) {}
