// What C++ adds: classes, templates, references, namespaces, lambdas, pointers to members.
namespace shop {

enum class Kind : unsigned char { Fruit, Bread = 9 };

struct Base {
	virtual ~Base() {}
	virtual int price(int count) const { return count * 2; }
	int id = 1;
};

template <typename T, int N = 2> class Pair : public Base {
public:
	T a[N];
	static T shared;
	explicit Pair(const T &x, T &&y) : a{x, y} {}
	int price(int count) const override { return (int)a[0] * count + Base::price(count); }
	template <typename F> T each(F f)
	{
		T sum{};
		for (auto &v : a)
			sum += f(v);
		return sum;
	}
};
template <typename T, int N> T Pair<T, N>::shared = 3;

struct Item { Kind kind; long worth : 20; int &count; int Item::*none = nullptr; };

__attribute__((noinline)) long sum(const Item &item, Base *base, int (Base::*how)(int) const)
{
	int n = item.count;
	auto twice = [&n, &item](long x) { return x * 2 + n + item.worth; };
	long out = twice((base->*how)(n));
	__asm__ volatile("" : : "r"(out) : "memory");
	return out;
}

__attribute__((noinline)) Item cheapest(Item a, Item &b, decltype(nullptr))
{
	return a.worth < b.worth ? a : b;
}

}

extern "C" long entry(int n)
{
	shop::Pair<long> pair(n, 4);
	int count = n;
	shop::Item item{shop::Kind::Bread, n, count};
	shop::Item best = shop::cheapest(item, item, nullptr);
	return shop::sum(best, &pair, &shop::Base::price) + pair.each([](long v) { return v + 1; }) + shop::Pair<long>::shared;
}

void operator delete(void *) noexcept {}
void operator delete(void *, unsigned long) noexcept {}
extern "C" { void __cxa_pure_virtual() {} void *__dso_handle; }
