/* A forked child has its parent's memory but not its threads, nor its driver's state: no
 * vendor's driver can be used there, and a lock may be held by a thread that is gone. */
#ifndef MOONBRIGHT_FORKS_H
#define MOONBRIGHT_FORKS_H

#include "error.h"

/* From here on a fork is noticed in the child. */
void forks_watch(void);
/* MB_UNSUPPORTED in the child of a process that had used the library. */
int32_t forks_check(void);

#endif
