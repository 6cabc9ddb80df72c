// Exceptions that are caught, and that pass through functions with something to destroy.
struct Held {
	int n;
	explicit Held(int n);
	~Held();
};
volatile int sink;
__attribute__((noinline)) Held::Held(int n) : n(n) { sink = n; }
__attribute__((noinline)) Held::~Held() { sink = -n; }
__attribute__((noinline)) int may(int n)
{
	if (n > 5)
		throw n;
	if (n < -5)
		throw 'c';
	return sink + n;
}
int caught(int n)
{
	try {
		return may(n);
	} catch (int e) {
		return e;
	} catch (...) {
		return may(1);
	}
}
int cleaned(int n)
{
	Held a(n);
	int r = may(n);
	Held b(r);
	return may(r) + may(n + 1);
}
int both(int n)
{
	int sum = 0;
	for (int i = 0; i < n; i++) {
		Held a(i);
		try {
			Held b(sum);
			sum += may(i);
		} catch (char e) {
			sum -= e;
		}
	}
	return sum;
}
int plain(int n) { return may(n) * 3; }
template <typename T> T other(T n)
{
	Held a(n);
	return may(n);
}
__attribute__((cold)) void rare(int n)
{
	Held a(n);
	may(n);
}
int split(int n)
{
	Held a(n);
	if (__builtin_expect(n > 100, 0))
		rare(n), may(n);
	return may(n);
}
int main(int argc, char **)
{
	return caught(argc) + cleaned(argc) + both(argc) + plain(argc) + other(argc) + int(other(long(argc))) + split(argc);
}
