#include "lost.h"

HALF(CALLER)
