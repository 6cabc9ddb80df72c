#include "textflag.h"

// The kernel single-steps a copy of XOR, and emulates a NOP.

TEXT ·stepped(SB), NOSPLIT|NOFRAME, $0-0
	XORL AX, AX
	RET

TEXT ·emulated(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x90
	RET

TEXT ·after(SB), NOSPLIT|NOFRAME, $0-0
	BYTE $0x90
	RET

DATA ·steppedPC+0(SB)/8, $·stepped(SB)
GLOBL ·steppedPC(SB), RODATA|NOPTR, $8
DATA ·emulatedPC+0(SB)/8, $·emulated(SB)
GLOBL ·emulatedPC(SB), RODATA|NOPTR, $8
DATA ·afterPC+0(SB)/8, $·after(SB)
GLOBL ·afterPC(SB), RODATA|NOPTR, $8
