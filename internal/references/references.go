// Package references has what instructions of prologues refer to by name: maps, and a function of the kernel. Whoever loads them makes
// these.
package references

import "github.com/cilium/ebpf/asm"

const (
	// RecordMap is the name of the map to which a prologue refers if prologue.Options.RecordBytes is set: an
	// array with one value of RecordMapSize bytes.
	RecordMap = "prologue_records"
	// RecordSlots is how many records can be in use at a time.
	RecordSlots = 64
	// RecordHead is how many bytes are before the first slot: the count of hits for which none was free.
	RecordHead = 64
	// RecordBase points to the record, and 8 bytes after its mark.
	RecordBase = asm.R8

	// MissingCounter is the name of the map to which a prologue refers if prologue.Options.CountMissing is set: an array with one value of
	// CounterSize bytes, which counts hits for which a condition could not be computed, and then, up to MaxFalse, those for which it was false.
	MissingCounter = "condition_missing"
	// CounterSize is the size of its value.
	CounterSize = 16
	// FalseCounter is where in it the second count is.
	FalseCounter = 8
	// MaxFalse is how many hits with a false condition are counted: later ones only read, since a number that all processors write is slow.
	MaxFalse = 1000

	// CastFunction is the kernel's function that prologue.ReadCast calls. Its calls refer to it by this name, and have no
	// number before they are loaded.
	CastFunction = "bpf_rdonly_cast"
)

// RecordMapSize returns the size of the value of RecordMap for records of so many bytes.
func RecordMapSize(record int) int { return RecordHead + RecordSlots*(8+record) }

// ReleaseRecord returns the instruction that makes a record free again, to be executed after the user's
// program.
func ReleaseRecord() asm.Instruction {
	return asm.Instruction{OpCode: asm.StoreImmOp(asm.DWord), Dst: RecordBase, Offset: -8}
}
