// Package packfile is the file format of packs: all answers for an image, without its debug
// information. See docs/packs.md.
package packfile

import "github.com/bpfprologue/bpfprologue/loc"

// TypeID is the number of a type in the BTF of a pack; 0 is void.
type TypeID uint32

// Function is what the declaration of a function says. Functions with one name can have
// several, in several units.
type Function struct {
	Name      string
	Qualified string // as people write it; equal to Name in C
	// DeclFile and DeclLine say where it is declared, as dwarfloc.Site.Declared does.
	DeclFile string
	DeclLine int
	Params   []Param
}

// Param is a parameter of a function as it is declared, in order; one that only some sites have
// comes after those.
type Param struct {
	Name string
	Type TypeID
}

// Site is a place where the body of a function begins, as dwarfloc.Site.
type Site struct {
	Function *Function
	Inline   bool
	Addr     uint64 // link-time address
	View     uint64
	// Symbol holds the address, and Offset is the address's from its start; "" if there is none.
	Symbol                    string
	Offset                    uint64
	AfterPrologue, LocalEntry bool
	// Prologue is how many bytes the function's code begins before the site, with AfterPrologue.
	Prologue uint64
	// In and Of number the function that contains the code, and the one whose body it is: sites of one pack with
	// equal numbers are in the same body in hooks.Body's sense. Depth is hooks.Body.Depth.
	In, Of uint64
	Depth  int

	CallFile string
	CallLine int
	Callers  []Caller

	Values Values // of the function's parameters, at the site itself
	// Ways are those of an inlined instance. Of a function of a program that takes no return probe they are the places where it is
	// left, as ways in, with Again for a jump; or Unknown is why these are not known. Of any function, Within
	// and Again are what inside.Once says of its entry.
	Ways Ways

	// Refused is why no kernel takes a probe at the site, as package attachable says it, or "".
	Refused string
	// BadInstruction is what is wrong with the site's address in a program, as inside.CheckInstructions says
	// it after the path and the address, or "".
	BadInstruction string
}

// Caller is dwarfloc.Caller.
type Caller struct {
	Function, Qualified, CallFile string
	CallLine                      int
}

// Values is where the values of a function are at one place.
type Values struct {
	Params []Value // by index of Function.Params; one that the place does not have is Absent
	Frame  *Value  // $frame; nobody may change what a file returns, which many places share
	Result *Value  // $retval; with a type of its own
}

// Value is dwarfloc.Variable without its name and declared type.
type Value struct {
	Absent  bool
	Loc     loc.Location
	Reason  loc.Reason
	Entries int
	LowBit  bool
	// Type is the value's type where it is not the declared one; Own says so.
	Type TypeID
	Own  bool
	// Pointee is what an implicit pointer (Loc.Target) points to, the whole object; else nil.
	Pointee *Pointee
}

// Pointee is the object of an implicit pointer.
type Pointee struct {
	Name   string
	Type   TypeID
	Loc    loc.Location
	Reason loc.Reason
	// Pointee is what that points to, if it is an implicit pointer itself.
	Pointee *Pointee
}

// Ways is runs.Ways.
type Ways struct {
	Known    bool // they were looked for; the others are zero if not
	In, Out  []Way
	Unknown  string
	Within   bool
	Again    bool
	Folded   bool
	NoReturn int
}

// Way is dwarfloc.Way, and for a way in what is known there.
type Way struct {
	Addr, View, Probe uint64
	Again             bool
	Before            []Before
	// Symbol and Offset are those of Probe.
	Symbol string
	Offset uint64
	// Refused is why no kernel takes a probe at Probe of a way in, or in a program what is wrong with the instruction there, as
	// Site.BadInstruction; "" at the site's address. Ways out have it in programs.
	Refused string
	// Values are those at a way in; nil if they are the site's own.
	Values *Values
}

// Before is an instruction before a way in: see inside.Before.
type Before struct {
	Addr   uint64
	Code   []byte // of the instruction and what follows, at most 16 bytes
	Symbol string
	Offset uint64
}
