#include "lost.h"

REST(CALLER)
REST(READER)
