package nametest

import (
	"bytes"
	"debug/elf"
	"fmt"
)

// Evils are what hostile images have in their names: what a terminal obeys, or shows as something
// else; what ends a line, a word, a comment or a string in some language; what is not of UTF-8. A line
// that one of them begins has "!!" in front.
var Evils = []string{
	"\x1b[31m", "\n!!", "\r!!", "\t!!", "\x07", "\x7f", "\u009b1m", "\u0085!!", "\u202e", "\u2066", "\u200b", "\ufeff", "\u2028",
	"\xff\xfe", "\xc3", "\xa0",
	" ", "*/", "/*", "//", "#", "\"", "\\", "`", "'", "{", "};", ":", "+4", "%", "$1", "*", "?", "[a]", ",", "@", "(", "??/",
}

// Hostile returns a copy of an image in which all names but short ones have evil inside, from their
// third byte on: those of functions, variables, types, members, files and symbols.
func Hostile(image []byte, evil string) ([]byte, error) {
	image = bytes.Clone(image)
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return nil, err
	}
	for _, name := range []string{".debug_str", ".debug_line_str", ".strtab"} {
		s := f.Section(name)
		if s == nil || s.Flags&elf.SHF_COMPRESSED != 0 || s.Offset+s.FileSize > uint64(len(image)) {
			return nil, fmt.Errorf("%s: not there as it is", name)
		}
		for d := image[s.Offset : s.Offset+s.FileSize]; len(d) > 0; {
			n := bytes.IndexByte(d, 0)
			// Producers decide how an image is read.
			if n > len(evil)+3 && !bytes.HasPrefix(d, []byte("GNU ")) {
				copy(d[2:], evil)
			}
			d = d[n+1:]
		}
	}
	return image, nil
}
