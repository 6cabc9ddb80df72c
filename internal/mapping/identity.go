package mapping

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// File returns the file that is mapped.
func (m *Mapping) File() *os.File { return m.file }

// Size returns the file's size in bytes.
func (m *Mapping) Size() int64 {
	if m == nil {
		return 0
	}
	return m.size
}

// Identity returns the identity of the file as it was when it was opened.
func (m *Mapping) Identity() string { return IdentityOf(&m.stat) }

// IdentityOf returns what tells a file from all other files of the machine, and from what it is after it
// has been written to. Nobody can choose its last part, the time of the inode's last change.
func IdentityOf(st *unix.Stat_t) string {
	return fmt.Sprintf("%d:%d:%d:%d.%09d:%d.%09d", st.Dev, st.Ino, st.Size, st.Mtim.Sec, st.Mtim.Nsec, st.Ctim.Sec, st.Ctim.Nsec)
}

// Private reports whether only this user and root could write to the file when it was opened. In a file
// system that is a program (FUSE) that program decides what the file contains, each time it is read.
func (m *Mapping) Private() bool {
	var system unix.Statfs_t
	if m.file == nil || unix.Fstatfs(int(m.file.Fd()), &system) != nil || system.Type == unix.FUSE_SUPER_MAGIC {
		return false
	}
	return (m.stat.Uid == 0 || int(m.stat.Uid) == os.Geteuid()) && Unshared(&m.stat)
}

// Unshared reports whether only the owner of a file can write to it, and root. Its group may if it is the
// owner's own one, which has the same number: so most distributions set up users, and files that they make.
func Unshared(st *unix.Stat_t) bool {
	return st.Mode&0o002 == 0 && (st.Mode&0o020 == 0 || st.Gid == st.Uid)
}
