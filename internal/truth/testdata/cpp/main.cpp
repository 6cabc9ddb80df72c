// The program.
#include "program.h"

int main()
{
	classes();
	templates();
	references();
	truth_print();
	return 0;
}
