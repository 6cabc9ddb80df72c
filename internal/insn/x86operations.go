package insn

import (
	"fmt"
	"strings"
)

// Registers by the bits of their codes.
const (
	inAX = 1 << iota
	inCX
	inDX
	inBX
	inSP
	inBP
)

// x86Groups is volume 2 of the Intel SDM. A name with a star stands for many operations, which their opcodes tell apart. What is in no group
// may do anything: SYSCALL, INT, HLT, ENTER.
var x86Groups = []x86Group{
	{does: effect{verb: adds, flags: firstToo | flagged}, text: "add" + arithmetic(0) + " inc n.40-47:Zv1. fe/0:Eb1. ff/0:Ev1."},
	{does: effect{verb: subtracts, flags: firstToo | flagged}, text: "dec n.48-4f:Zv1. fe/1:Eb1. ff/1:Ev1."},
	{does: effect{verb: subtracts, flags: firstToo | compared | clears}, text: "sub" + arithmetic(5)},
	{does: effect{verb: compares}, text: "cmp" + arithmetic(7)},
	{does: effect{verb: masks, flags: firstToo | flagged}, text: "and" + arithmetic(4)},
	{does: effect{verb: flips, flags: firstToo | flagged | clears}, text: "xor" + arithmetic(6)},
	{does: effect{verb: computes, flags: firstToo | flagged}, text: "or" + arithmetic(1) + " adc" + arithmetic(2)},
	{does: effect{verb: computes, flags: firstToo | flagged | borrows}, text: "sbb" + arithmetic(3)},
	{does: effect{verb: tests}, text: "test 84:EbGb 85:EvGv a8:AbIb a9:AvIz f6/0:EbIb f6/1:EbIb f7/0:EvIz f7/1:EvIz"},
	{does: effect{verb: computes, flags: firstToo}, text: "not f6/2:Eb f7/2:Ev bswap 0fc8-0fcf:Zv"},
	{does: effect{verb: shiftsLeft, flags: firstToo | flagged | around}, text: "shl" + shift(4) + shift(6)},
	{does: effect{verb: shiftsRight, flags: firstToo | flagged | around}, text: "shr" + shift(5)},
	{does: effect{verb: shiftsRight, flags: firstToo | flagged | around | signedBits}, text: "sar" + shift(7)},
	{does: effect{verb: computes, flags: firstToo | flagged}, text: "rol" + shift(0) + " ror" + shift(1) + " rcl" + shift(2) + " rcr" + shift(3) + `
		neg f6/3:Eb f7/3:Ev shld 0fa4:EvGvIb 0fa5:EvGvCb shrd 0fac:EvGvIb 0fad:EvGvCb imul 0faf:GvEv
		bts 0fab:UvGv 0fba/5:EvIb btr 0fb3:UvGv 0fba/6:EvIb btc 0fbb:UvGv 0fba/7:EvIb arpl n.63:EwGw
		crc32 f2.0f38f0:GyEb f2.0f38f1:GyEv adcx 66.0f38f6:GyEy adox f3.0f38f6:GyEy rdsspq f3.0f1e/1r:Ey`},
	{does: effect{verb: nothing, flags: flagged}, text: `bt 0fa3:UvGv 0fba/4:EvIb clc f8: cmc f5: stc f9: cld fc: std fd: cli fa: sti fb: verr 0f00/4:Ew verw 0f00/5:Ew
		clac 0f01=ca: stac 0f01=cb: vmwrite np.0f79:GaEa *x87 d8r: d9r: dar: dbr: dcr: ddr: der:`},
	{does: effect{verb: multiplies, flags: flagged}, text: "imul 69:GvEvIz 6b:GvEvIb"},
	{does: effect{verb: computes, flags: flagged}, text: `tzcnt f3.0fbc:GvEv lzcnt f3.0fbd:GvEv popcnt f3.0fb8:GvEv
		rdpid f3.0fc7/7r:Ey rdrand 0fc7/6r:Ev rdseed 0fc7/7r:Ev vmread np.0f78:EaGa smsw 0f01/4m:Ew 0f01/4r:Ev`},
	{does: effect{verb: chooses, flags: firstToo | flagged}, text: "bsf 0fbc:GvEv bsr 0fbd:GvEv lar 0f02:GvEw lsl 0f03:GvEw"},
	{does: effect{verb: chooses, flags: firstToo}, text: "cmov 0f40-0f4f:GvEv"},
	{does: effect{verb: truth}, text: "set 0f90-0f9f:Eb"},
	{does: effect{verb: computes}, text: "sldt 0f00/0m:Ew 0f00/0r:Ev str 0f00/1m:Ew 0f00/1r:Ev cqo 99:DvAv movbe 0f38f0:GvMv 0f38f1:MvGv"},

	{does: effect{verb: nothing, flags: flagged}, reads: inAX, writes: inAX, text: "mul f6/4:Eb imul f6/5:Eb div f6/6:Eb idiv f6/7:Eb"},
	{does: effect{verb: nothing, flags: flagged}, reads: inAX, writes: inAX | inDX, text: "mul f7/4:Ev imul f7/5:Ev"},
	{does: effect{verb: nothing, flags: flagged | divides}, reads: inAX | inDX, writes: inAX | inDX, text: "div f7/6:Ev"},
	{does: effect{verb: nothing, flags: flagged | divides | signedBits}, reads: inAX | inDX, writes: inAX | inDX, text: "idiv f7/7:Ev"},
	{does: effect{verb: nothing, flags: flagged}, reads: inAX, writes: inAX, text: "daa n.27: das n.2f: aaa n.37: aas n.3f: aam n.d4: aad n.d5: salc n.d6:"},
	{does: effect{verb: nothing, flags: flagged}, reads: inAX, text: "sahf 9e:"},
	{does: effect{verb: nothing}, reads: inAX, writes: inAX, text: "lahf 9f:"},
	{does: effect{verb: nothing}, reads: inAX | inCX, writes: inAX | inCX | inDX | inBX, text: "cpuid 0fa2:"},
	{does: effect{verb: nothing}, reads: inCX, writes: inAX | inDX, text: "rdmsr 0f32: rdpmc 0f33: xgetbv 0f01=d0:"},
	{does: effect{verb: nothing}, writes: inAX | inDX, text: "rdtsc 0f31:"},
	{does: effect{verb: nothing}, writes: inAX | inDX | inCX, text: "rdtscp 0f01=f9:"},
	{does: effect{verb: nothing}, reads: inAX | inCX | inDX, text: "wrmsr 0f30: xsetbv 0f01=d1: monitor 0f01=c8: mwait 0f01=c9:"},
	{does: effect{verb: nothing}, reads: inCX, text: "jrcxz e3:"},
	{does: effect{verb: nothing}, reads: inCX, writes: inCX, text: "loop e0: e1: e2:"},
	{does: effect{verb: computes}, reads: inAX | inBX, text: "xlat d7:Ab"},

	{does: effect{verb: moves}, text: `mov 88:EbGb 89:EvGv 8a:GbEb 8b:GvEv c6/0:EbIb c7/0:EvIz b0-b7:ZbIb b8-bf:ZvIv a0:AbOb a1:AvOv a2:ObAb a3:OvAv
		movnti 0fc3:MyGy`},
	{does: effect{verb: computes}, text: "mov 8cm:EwS. 8cr:EvS. 0f20:RaS. 0f21:RaS. lds n.c5:GvMn les n.c4:GvMn lss 0fb2:GvMn lfs 0fb4:GvMn lgs 0fb5:GvMn"},
	{does: effect{verb: nothing}, text: "mov 8e:Ew 0f22:Ra 0f23:Ra"},
	{does: effect{verb: extends}, text: "movzx 0fb6:GvEb 0fb7:GvEw"},
	{does: effect{verb: extends, flags: signedBits}, text: "movsx 0fbe:GvEb 0fbf:GvEw movsxd w.63:GvEd cdqe 98:AvAh"},
	{does: effect{verb: addresses}, text: "lea 8d:GvM."},
	{does: effect{verb: nothing}, text: "pause f3.90:"},
	{does: effect{verb: moves, flags: firstToo | secondToo}, text: "xchg 86:EbGb 87:EvGv 90-97:ZvAv"},
	{does: effect{verb: adds, flags: firstToo | secondToo | flagged}, text: "xadd 0fc0:EbGb 0fc1:EvGv"},
	{does: effect{verb: computes, flags: firstToo | flagged}, reads: inAX, writes: inAX, text: "cmpxchg 0fb0:EbGb 0fb1:EvGv"},
	{does: effect{verb: computes, flags: firstToo | flagged | elsewhere}, reads: inAX | inCX | inDX | inBX, writes: inAX | inDX, text: "cmpxchg8b 0fc7/1m:Mn"},
	{does: effect{verb: pushes}, text: `push 50-57:Zp ff/6:Ep 68:Ip 6a:Ip n.06:Sp n.0e:Sp n.16:Sp n.1e:Sp 0fa0:Sp 0fa8:Sp pushf 9c:Sp`},
	{does: effect{verb: pops}, text: "pop 58-5f:Zp 8f/0:Ep"},
	{does: effect{verb: pops, flags: elsewhere}, text: "pop n.07:Sp n.17:Sp n.1f:Sp 0fa1:Sp 0fa9:Sp"},
	{does: effect{verb: pops, flags: elsewhere | flagged}, text: "popf 9d:Sp"},
	{does: effect{verb: nothing}, reads: inSP | inBP, writes: inSP | inBP, text: "leave c9:"},

	{does: effect{verb: moves}, text: "movs a4:YbXb a5:YvXv lods ac:AbXb ad:AvXv stos aa:YbAb ab:YvAv"},
	{does: effect{verb: nothing, flags: flagged}, text: "cmps a6:XbYb a7:XvYv scas ae:AbYb af:AvYv"},
	{does: effect{verb: computes, flags: elsewhere}, reads: inDX, text: "ins 6c:Yb 6d:Yv"},
	{does: effect{verb: nothing}, reads: inDX, text: "outs 6e:Xb 6f:Xv"},
	{does: effect{verb: computes}, text: "in e4:AbIb e5:AvIb ec:AbDw ed:AvDw"},
	{does: effect{verb: nothing}, text: "out e6:IbAb e7:IbAv ee:DwAb ef:DwAv"},

	{does: effect{verb: nothing}, text: `nop 0f1f:Ev 0f19-0f1d:Ev 0f1e:Ev jcc 70-7f: 0f80-0f8f: jmp e9: eb: ff/4:Ea call e8: ff/2:Ea ljmp ff/5:Mn lcall ff/3:Mn
		ret c2: c3: lret ca: cb: iret cf: ud2 0f0b: ud1 0fb9:GvEv ud0 0fff: int3 cc:
		prefetch 0f18:Mb prefetchw 0f0d:Mb lfence 0fae/5r: mfence 0fae/6r: sfence 0fae/7r: clflush 0fae/7m:Mb clwb 66.0fae/6m:Mb
		wrfsbase f3.0fae/2r:Ey wrgsbase f3.0fae/3r:Ey incsspq f3.0fae/5r:Ey clts 0f06: invd 0f08: wbinvd 0f09: swapgs 0f01=f8:
		lldt 0f00/2:Ew ltr 0f00/3:Ew lgdt 0f01/2m:Mn lidt 0f01/3m:Mn lmsw 0f01/6:Ew invlpg 0f01/7m:Mb invpcid 0f3882:GaMx
		ldmxcsr 0fae/2m:Md fxrstor 0fae/1m:Mn xrstor 0fae/5m:Mn bound n.62:GvMn fwait 9b: emms 0f77: vzeroupper v177: *vector 0f71r: 0f72r: 0f73r: v171r: v172r: v173r:
		*x87 d8m:Md d9/0m:Md d9/4m:Mn d9/5m:Mw dam:Md db/0m:Md db/5m:Mt dcm:Mq dd/0m:Mq dd/4m:Mn dem:Mw df/0m:Mw df/4m:Mt df/5m:Mq`},
	{does: effect{verb: computes}, text: "rdfsbase f3.0fae/0r:Ey rdgsbase f3.0fae/1r:Ey"},
	{does: effect{verb: computes, flags: elsewhere}, text: `fxsave 0fae/0m:Mn xsave 0fae/4m:Mn xsaveopt 0fae/6m:Mn xrstors 0fc7/3m:Mn xsavec 0fc7/4m:Mn xsaves 0fc7/5m:Mn
		sgdt 0f01/0m:Mn sidt 0f01/1m:Mn stmxcsr 0fae/3m:Md
		*x87 d9/2m:Md d9/3m:Md d9/6m:Mn d9/7m:Mw db/1m:Md db/2m:Md db/3m:Md db/7m:Mt dd/1m:Mq dd/2m:Mq dd/3m:Mq dd/6m:Mn dd/7m:Mw
		df/1m:Mw df/2m:Mw df/3m:Mw df/6m:Mt df/7m:Mq`},
	{does: effect{verb: nothing}, writes: inAX, text: "fnstsw df=e0:"},
	{does: effect{verb: nothing, flags: flagged}, text: "*x87 dfr:"},

	// Vectors: what stores them, what writes general registers, what compares, and the rest.
	{does: effect{verb: moves, flags: elsewhere}, text: `*vector 0f10:VxWs 0f11:WsVx 0f12:VxWq 0f13:MqVx 0f16:VxWq 0f17:MqVx 0f28:VxWx 0f29:WxVx 0f2b:MxVx 0f6e:VxEy
		0f6f:VxWm f3.0f7e:VxWq 0f7f:WmVx f2.0fd6:V.W. f3.0fd6:V.W. 0fd6:WqVx 0fe7:MmVx 0ff0:VxMx
		v110:VxWs v111:WsVx v112:VxWq v113:MqVx v116:VxWq v117:MqVx v128:VxWx v129:WxVx v12b:MxVx v16e:VxEy v16f:VxWx f3.v17e:VxWq v17f:WxVx
		v1d6:WqVx v1e7:MxVx`},
	{does: effect{verb: moves}, text: "*movd 0f7e:EyVx v17e:EyVx"},
	{does: effect{verb: computes}, text: `*vector f2.0f2c:GyWs f3.0f2c:GyWs f2.0f2d:GyWs f3.0f2d:GyWs 0f50:GyWx 0fc5:GyWm 0fd7:GyWm
		0f3a14m:EbVx 0f3a14r:EdVx 0f3a15m:EwVx 0f3a15r:EdVx 0f3a16:EyVx 0f3a17:EdVx
		v150:GyWx v1c5:GyWx v1d7:GyWx f2.v12c:GyWs f3.v12c:GyWs f2.v12d:GyWs f3.v12d:GyWs`},
	{does: effect{verb: computes, flags: elsewhere | flagged}, text: "*vector 0f2e:VxWc 0f2f:VxWc 0f3817:VxWx 0f3a60:VxWxIb 0f3a62:VxWxIb"},
	{does: effect{verb: computes, flags: elsewhere | flagged}, reads: inAX | inDX, writes: inCX, text: "*vector 0f3a61:VxWxIb 0f3a63:VxWxIb"},
	{does: effect{verb: computes, flags: elsewhere}, text: `*vector f2.0f2a:VxEy f3.0f2a:VxEy 0f2a:VxWq 0f2c:VxWs 0f2d:VxWs 0f14:VxWx 0f15:VxWx 0f51-0f59:VxWs np.0f5a:VxWq
		0f5a:VxWs 0f5b:VxWx 0f5c-0f5f:VxWs 0f60-0f6d:VxWm 0f70:VxWmIb 0f74-0f76:VxWm 0f7c:VxWx 0f7d:VxWx 0fc2:VxWsIb 0fc4:VxEwIb
		0fc6:VxWxIb 0fd0:VxWx 0fd1-0fd5:VxWm 0fd8-0fdf:VxWm 0fe0-0fe5:VxWm f3.0fe6:VxWq 0fe6:VxWx 0fe8-0fef:VxWm 0ff1-0ff6:VxWm 0ff8-0ffe:VxWm
		0f3800-0f380b:VxWm 0f3810:VxWx 0f3814:VxWx 0f3815:VxWx 0f381c-0f381e:VxWm 0f3820:VxWq 0f3821:VxWd 0f3822:VxWw 0f3823:VxWq 0f3824:VxWd 0f3825:VxWq
		0f3828-0f382b:VxWx 0f3830:VxWq 0f3831:VxWd 0f3832:VxWw 0f3833:VxWq 0f3834:VxWd 0f3835:VxWq 0f3837-0f3841:VxWx 0f38c8-0f38cd:VxWx
		0f38cf:VxWx 0f38db-0f38df:VxWx 0f3a08:VxWxIb 0f3a09:VxWxIb 0f3a0a:VxWdIb 0f3a0b:VxWqIb 0f3a0c-0f3a0e:VxWxIb 0f3a0f:VxWmIb
		0f3a20:VxEbIb 0f3a21:VxWdIb 0f3a22:VxEyIb 0f3a40-0f3a42:VxWxIb 0f3a44:VxWxIb 0f3acc:VxWxIb 0f3ace:VxWxIb 0f3acf:VxWxIb 0f3adf:VxWxIb
		v177: v12a:VxEy v27a:VxEb v27b:VxEw v27c:VxEy v320:VxEb v322:VxEy f2.v17b:VxEy f3.v17b:VxEy v52a:VxEy v57b:VxEy v192:VxEy v1c4:VxEw`},

	// With a VEX or EVEX prefix: BMI, what else writes general registers, of which not all is known, and the rest, which may write memory.
	{does: effect{verb: computes, flags: flagged}, text: "andn v2f2:GyByEy bls v2f3:ByEy bzhi np.v2f5:GyEyBy bextr np.v2f7:GyEyBy"},
	{does: effect{verb: computes}, text: "pdep v2f5:GyByEy *shlx v2f7:GyEyBy rorx v3f0:GyEyIb kmov v193:GyWx"},
	{does: effect{verb: computes, flags: secondToo}, reads: inDX, text: "mulx f2.v2f6:GyByEy"},
	{text: `*vector v12c: v12d: v178: v179: v2e0-v2ef: v2f6: v314: v315: v316: v317: v360-v363: v52c: v52d: v578: v579: v57e:`},
	{does: effect{verb: computes, flags: elsewhere | memoryToo | flagged}, text: "*vector v100-v1ff:VxWn v200-v2ff:VxWn v300-v3ff:VxWn v500-v5ff:VxWn"},
}

// arithmetic is the opcodes of the operations that have the first 64 of one byte.
func arithmetic(n int) string {
	at := 8 * n
	return fmt.Sprintf(" %02x:EbGb %02x:EvGv %02x:GbEb %02x:GvEv %02x:AbIb %02x:AvIz 80/%d:EbIb 81/%d:EvIz n.82/%d:EbIb 83/%d:EvIb", at, at+1, at+2, at+3, at+4, at+5, n, n, n, n)
}

// shift is the opcodes of shifts: by a number, by 1, and by CL.
func shift(n int) string {
	return strings.ReplaceAll(" c0/%:EbIb c1/%:EvIb d0/%:Eb1. d1/%:Ev1. d2/%:EbCb d3/%:EvCb", "%", fmt.Sprint(n))
}
