// Package ops has the operations of loc.Expr, which package loc documents, and the numbers that the kernel knows of a task.
package ops

import "strconv"

// Op is the operation of one node of an expression: see loc.Op.
type Op uint8

// The operations. Comparisons give 1 or 0. Where B = 0 is a fault, the value does not exist.
const (
	Const  Op = iota // K
	Reg              // the register with DWARF number K
	Addr             // the link-time address K, which moves with the image
	Deref            // the Size bytes in memory at A, zero-extended
	ZExt             // the low Size bytes of A, zero-extended
	SExt             // the low Size bytes of A, sign-extended
	Neg              // -A
	Not              // ^A
	Add              // A + B
	Sub              // A - B
	Mul              // A * B
	Div              // A / B, signed, towards zero; B = 0 is a fault
	UDiv             // A / B, unsigned; B = 0 is a fault
	Mod              // A % B, signed, with the sign of A; B = 0 is a fault
	UMod             // A % B, unsigned; B = 0 is a fault
	And              // A & B
	Or               // A | B
	Xor              // A ^ B
	Shl              // A << B, 0 for B of 64 or more
	Shr              // A >> B, unsigned, 0 for B of 64 or more
	Shra             // A >> B, signed, the sign for B of 64 or more
	Eq               // A == B: 1 or 0
	Ne               // A != B
	Lt               // A < B, signed
	Le               // A <= B, signed
	Gt               // A > B, signed
	Ge               // A >= B, signed
	ULt              // A < B, unsigned
	ULe              // A <= B, unsigned
	UGt              // A > B, unsigned
	UGe              // A >= B, unsigned
	Select           // A != 0 ? B : C; only one of B and C is computed
	Caller           // the value of the Arm of B, or of those after it, whose K is A; a fault if there is none
	Arm              // of a Caller: the value A for K; B is the next arm, or nil
	Task             // the Task with number K: what the kernel knows of the current task
	Text             // the first 8 bytes of the string in memory at A as a number, with zeros after its NUL
	Glob             // whether the string of at most K bytes in memory at A, or the task's name, matches Pattern
	Clz              // how many bits of A are 0 above the highest that is 1; 64 for 0
)

// MaxApart bounds the K of an Arm: the callers of one Caller are near each other.
const MaxApart = 1<<31 - 1

var opText = [...]string{
	Const:  "const",
	Reg:    "register",
	Addr:   "address",
	Deref:  "deref",
	ZExt:   "zext",
	SExt:   "sext",
	Neg:    "neg",
	Not:    "not",
	Add:    "+",
	Sub:    "-",
	Mul:    "*",
	Div:    "/",
	UDiv:   "/u",
	Mod:    "mod",
	UMod:   "modu",
	And:    "&",
	Or:     "|",
	Xor:    "^",
	Shl:    "<<",
	Shr:    ">>u",
	Shra:   ">>",
	Eq:     "==",
	Ne:     "!=",
	Lt:     "<",
	Le:     "<=",
	Gt:     ">",
	Ge:     ">=",
	ULt:    "<u",
	ULe:    "<=u",
	UGt:    ">u",
	UGe:    ">=u",
	Select: "select",
	Caller: "caller",
	Arm:    "arm",
	Task:   "task",
	Text:   "text",
	Glob:   "glob",
	Clz:    "clz",
}

// String returns the name that loc.Op lists: "deref", "+".
func (o Op) String() string {
	if int(o) < len(opText) {
		return opText[o]
	}
	return "op-" + strconv.Itoa(int(o))
}

// TaskNumber is a number that the kernel knows of the current task. It does not depend on the site.
type TaskNumber uint64

// The numbers of the current task.
const (
	TaskPID    TaskNumber = iota // the ID of the process in the initial PID namespace
	TaskTID                      // the ID of the thread there
	TaskUID                      // the real user ID
	TaskGID                      // the real group ID
	TaskCPU                      // the number of the processor
	TaskCgroup                   // the ID of its cgroup (version 2)
	TaskTime                     // nanoseconds since the machine started, not counting suspensions
	TaskComm                     // the first 8 bytes of the name; the next number is the others
	tasks      = TaskComm + 2
)

// String returns the name as definitions write it: "$pid". Of the task's name it says which bytes.
func (t TaskNumber) String() string {
	if names := [...]string{"$pid", "$tid", "$uid", "$gid", "$cpu", "$cgroup", "$time", "$comm[0:8]", "$comm[8:16]"}; t < tasks {
		return names[t]
	}
	return "$task" + strconv.FormatUint(uint64(t), 10)
}
