// The program.
#include "program.h"

int main()
{
	classes();
	templates();
	references();
	kinds();
	truth_print();
	return 0;
}
