package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// vectorCiphers are ciphers by the names of the drivers that compute them with vector registers, and those of the drivers that do not:
// both give the same. Sizes are in bytes.
var vectorCiphers = []struct {
	driver, plain string
	key, iv       int
}{
	{"ecb-aes-aesni", "ecb(aes-generic)", 32, 0}, {"cbc-aes-aesni", "cbc(aes-generic)", 32, 16}, {"ctr-aes-aesni", "ctr(aes-generic)", 32, 16}, {"xts-aes-aesni", "xts(ecb(aes-generic))", 64, 16},
	{"ecb-serpent-avx2", "ecb(serpent-generic)", 32, 0}, {"cbc-serpent-avx2", "cbc(serpent-generic)", 32, 16},
	{"ecb-serpent-avx", "ecb(serpent-generic)", 32, 0}, {"ecb-serpent-sse2", "ecb(serpent-generic)", 32, 0},
	{"ecb-twofish-avx", "ecb(twofish-generic)", 32, 0}, {"cbc-twofish-avx", "cbc(twofish-generic)", 32, 16},
	{"ecb-camellia-aesni-avx2", "ecb(camellia-generic)", 32, 0}, {"cbc-camellia-aesni-avx2", "cbc(camellia-generic)", 32, 16}, {"ecb-camellia-aesni", "ecb(camellia-generic)", 32, 0},
	{"ecb-cast6-avx", "ecb(cast6-generic)", 32, 0},
	{"chacha20-simd", "chacha20-generic", 32, 16}, {"xchacha20-simd", "xchacha20-generic", 32, 32},
}

// vectorHashes are the same of hashes.
var vectorHashes = [][2]string{
	{"sha1-avx2", "sha1-generic"}, {"sha1-avx", "sha1-generic"}, {"sha1-ssse3", "sha1-generic"},
	{"sha256-avx2", "sha256-generic"}, {"sha256-avx", "sha256-generic"}, {"sha256-ssse3", "sha256-generic"},
	{"sha512-avx2", "sha512-generic"}, {"sha512-avx", "sha512-generic"}, {"sha512-ssse3", "sha512-generic"},
	{"crct10dif-pclmul", "crct10dif-generic"}, {"crc32c-intel", "crc32c-generic"}, {"crc32-pclmul", "crc32-generic"},
}

// vectors works, and prints what came of it.
func vectors() error {
	data := make([]byte, 3072)
	for i := range data {
		data[i] = byte(i*i>>3 + i)
	}
	for _, c := range vectorCiphers {
		var got [2]string
		for i, name := range []string{c.driver, c.plain} {
			for _, encrypt := range []bool{true, false} {
				out, err := cipher(name, data[:c.key], data[100:100+c.iv], data, encrypt)
				got[i] += fmt.Sprintf(" %x %v", sha256.Sum256(out), err)
			}
		}
		fmt.Printf("%s: like %s %v:%s\n", c.driver, c.plain, got[0] == got[1], got[0])
	}
	for _, h := range vectorHashes {
		a, aErr := kernelHash(h[0], data)
		b, bErr := kernelHash(h[1], data)
		fmt.Printf("%s: like %s %v: %x %v\n", h[0], h[1], bytes.Equal(a, b) && aErr == nil && bErr == nil, a, aErr)
	}
	return arrays(data)
}

// cipher has the kernel encrypt or decrypt.
func cipher(name string, key, iv, data []byte, encrypt bool) ([]byte, error) {
	s, err := unix.Socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(s) }()
	if err := unix.Bind(s, &unix.SockaddrALG{Type: "skcipher", Name: name}); err != nil {
		return nil, err
	}
	if err := unix.SetsockoptString(s, unix.SOL_ALG, unix.ALG_SET_KEY, string(key)); err != nil {
		return nil, err
	}
	fd, _, errno := unix.Syscall6(unix.SYS_ACCEPT4, uintptr(s), 0, 0, 0, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	defer func() { _ = unix.Close(int(fd)) }()
	var control []byte
	add := func(kind int32, data []byte) {
		head := unix.Cmsghdr{Level: unix.SOL_ALG, Type: kind}
		head.SetLen(unix.CmsgLen(len(data)))
		b := make([]byte, unix.CmsgSpace(len(data)))
		copy(b, unsafe.Slice((*byte)(unsafe.Pointer(&head)), unsafe.Sizeof(head)))
		copy(b[unix.CmsgLen(0):], data)
		control = append(control, b...)
	}
	operation := uint32(unix.ALG_OP_DECRYPT)
	if encrypt {
		operation = unix.ALG_OP_ENCRYPT
	}
	add(unix.ALG_SET_OP, binary.NativeEndian.AppendUint32(nil, operation))
	if len(iv) > 0 {
		add(unix.ALG_SET_IV, append(binary.NativeEndian.AppendUint32(nil, uint32(len(iv))), iv...))
	}
	if err := unix.Sendmsg(int(fd), data, control, nil, 0); err != nil {
		return nil, err
	}
	out := make([]byte, len(data))
	n, err := unix.Read(int(fd), out)
	return out[:max(n, 0)], err
}

// Two arrays of level 6 over disks in memory: one with all four disks, of which each write computes P and Q, and one with two of
// four, of which each read recovers the other two.
var arraysOf = []struct {
	name        string
	first, disk int // the number of a disk in memory, and in the array's first slot
	slots       []int
}{{"md_whole", 0, 4, []int{0, 1, 2, 3}}, {"md_half", 4, 4, []int{1, 3}}}

const blocks = 8 // that are written, of 4 KiB: that is a chunk

func makeArrays() error {
	for _, a := range arraysOf {
		if err := os.WriteFile("/sys/module/md_mod/parameters/new_array", []byte(a.name), 0); err != nil {
			return err
		}
		dir := "/sys/block/" + a.name + "/md/"
		set := func(file, text string) error {
			if err := os.WriteFile(dir+file, []byte(text), 0); err != nil {
				return fmt.Errorf("%s: %w", text, err)
			}
			return nil
		}
		err := errors.Join(set("metadata_version", "none"), set("level", "raid6"), set("raid_disks", fmt.Sprint(a.disk)), set("layout", "2"), set("chunk_size", "4096"))
		for i, slot := range a.slots {
			disk := fmt.Sprintf("ram%d", a.first+i)
			number, numberErr := os.ReadFile("/sys/block/" + disk + "/dev")
			err = errors.Join(err, numberErr, set("new_dev", strings.TrimSpace(string(number))), set("dev-"+disk+"/slot", fmt.Sprint(slot)))
		}
		if err := errors.Join(err, set("component_size", "512"), set("resync_start", "none"), set("array_state", "active")); err != nil {
			return err
		}
	}
	return nil
}

// arrays writes to the arrays and reads from them, and prints what is on the disks.
func arrays(data []byte) error {
	for _, a := range arraysOf {
		f, err := device(a.name)
		if err != nil {
			return err
		}
		// The kernel reads and writes whole pages of its own accord.
		buf, err := unix.Mmap(-1, 0, blocks*4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			return err
		}
		for i := range buf {
			buf[i] = data[i%len(data)] ^ byte(i>>9)
		}
		want := sha256.Sum256(buf)
		_, err = unix.Pwrite(int(f.Fd()), buf, 0)
		clear(buf)
		_, readErr := unix.Pread(int(f.Fd()), buf, 0)
		if err := errors.Join(err, readErr, f.Close()); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
		fmt.Printf("%s: read what was written %v", a.name, sha256.Sum256(buf) == want)
		for i := range a.slots {
			disk, err := device(fmt.Sprintf("ram%d", a.first+i))
			if err != nil {
				return err
			}
			n, err := unix.Pread(int(disk.Fd()), buf, 0)
			if err := errors.Join(err, disk.Close()); err != nil {
				return err
			}
			sum := sha256.Sum256(buf[:n])
			fmt.Printf(" %x", sum[:6])
		}
		fmt.Println()
		if err := unix.Munmap(buf); err != nil {
			return err
		}
	}
	return nil
}

// device opens a block device by the name that the kernel has for it.
func device(name string) (*os.File, error) {
	text, err := os.ReadFile("/sys/block/" + name + "/dev")
	if err != nil {
		return nil, err
	}
	var major, minor uint32
	if _, err := fmt.Sscanf(string(text), "%d:%d", &major, &minor); err != nil {
		return nil, err
	}
	path := filepath.Join("/tmp", "device-"+name)
	if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(unix.Mkdev(major, minor))); err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	return os.OpenFile(path, os.O_RDWR|unix.O_DIRECT|unix.O_SYNC, 0)
}
