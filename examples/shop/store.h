int store_take(const char *who, int count);
