// The program of docs/cookbook.md in C++.
#include <cstdio>
#include <string>
#include <vector>

namespace shop {

struct Customer {
	std::string name;
	std::vector<int> orders;
};

class Till {
	long sum = 0;

public:
	__attribute__((noinline)) bool sell(const Customer &who, const std::string &what, int price) {
		if (price <= 0) {
			return false;
		}
		sum += price + static_cast<long>(who.orders.size() + what.size());
		return true;
	}
	long all() const { return sum; }
};

} // namespace shop

int main() {
	shop::Till till;
	shop::Customer ann{"ann", {1, 2, 3}}, bob{"bob with a name that is not short", {}};
	till.sell(ann, "tea", 4);
	till.sell(bob, "a kettle of copper", 60);
	till.sell(ann, "nothing", 0);
	std::printf("%ld\n", till.all());
}
