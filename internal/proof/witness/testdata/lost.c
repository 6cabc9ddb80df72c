#include "lost.h"

REST(CALLER)
