#include "lost.h"

HALF(CALLER)
HALF(READER)
