package suggest

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/nametest"
)

func TestNearest(t *testing.T) {
	names := strings.Fields(`
		get_page put_page get_pages get_user_pages __get_page get_page.isra.0
		page paeg flags flag err i j tcp_sendmsg tcp_sendmsg_locked tcp_sendpage get_page`)
	for _, tt := range []struct {
		name string
		max  int
		want string
	}{
		{"get_page", 3, "get_page get_pages __get_page"},
		{"get_pgae", 9, "get_page get_pages __get_page put_page"},
		{"get_pag", 2, "get_page get_pages"},
		{"sendmsg", 5, "tcp_sendmsg tcp_sendmsg_locked"},
		{"flgas", 5, "flags flag"},
		{"flog", 5, "flag"},
		{"paeg", 5, "paeg page"},
		{"pgae", 5, "page"}, // a swap is one change, not two
		{"apeg", 5, "paeg"},
		{"xpgae", 5, "page"},
		{"er", 5, "err"},
		{"i", 5, "i"},
		{"x", 5, ""},
		{"ge", 5, ""},
		{"wholly_different", 5, ""},
		{"", 5, ""},
		{"get_page", 0, ""},
	} {
		got := Nearest(tt.name, slices.Values(names), tt.max)
		if !slices.Equal(got, strings.Fields(tt.want)) {
			t.Errorf("Nearest(%q, %d) = %q, want %q", tt.name, tt.max, got, tt.want)
		}
	}
}

// The lower bounds must not change the result.
func TestNearestAgainstAllDistances(t *testing.T) {
	names := nametest.Kernel(1000)
	random := rand.New(rand.NewPCG(1, 2))
	near := 0
	for range 100 {
		name := []byte(names[random.IntN(len(names))])
		for range random.IntN(4) {
			name[random.IntN(len(name))] = byte('a' + random.IntN(26))
		}
		for range random.IntN(3) {
			if i := random.IntN(len(name)); i > 0 {
				name[i-1], name[i] = name[i], name[i-1]
			}
		}
		asked := string(name)

		distances := make(map[string]int)
		for _, candidate := range names {
			distances[candidate] = editDistance(asked, candidate)
		}
		want := slices.Clone(names)
		want = slices.DeleteFunc(want, func(candidate string) bool {
			return distances[candidate] > (len(asked)+1)/3 && !strings.Contains(candidate, asked)
		})
		slices.SortFunc(want, func(a, b string) int {
			return cmp.Or(distances[a]-distances[b], strings.Compare(a, b))
		})
		want = slices.Compact(want)
		for _, limit := range []int{1, 5, len(names)} {
			want := want[:min(limit, len(want))]
			got := Nearest(asked, slices.Values(names), limit)
			if !slices.Equal(got, want) {
				t.Fatalf("Nearest(%q, %d)\n got %q\nwant %q", asked, limit, got, want)
			}
			near += len(got)
		}
	}
	if near == 0 {
		t.Error("no name was near any other")
	}
}

// editDistance fills the whole table of distances between prefixes.
func editDistance(a, b string) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0 || j == 0:
				table[i][j] = i + j
			case a[i-1] == b[j-1]:
				table[i][j] = table[i-1][j-1]
			default:
				table[i][j] = 1 + min(table[i-1][j-1], table[i-1][j], table[i][j-1])
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					table[i][j] = min(table[i][j], 1+table[i-2][j-2])
				}
			}
		}
	}
	return table[len(a)][len(b)]
}

func TestNearestLongNames(t *testing.T) {
	long := strings.Repeat("_Z3foo", 20000)
	names := slices.Values([]string{long[1:], long, long + "v", strings.ToLower(long)})
	if got, want := Nearest(long, names, 5), []string{long, long + "v"}; !slices.Equal(got, want) {
		t.Errorf("found %d names, want the %d that contain the long one", len(got), len(want))
	}
}

func BenchmarkNearest(b *testing.B) {
	names := nametest.Kernel(60000)
	for _, name := range []string{"tcp_snedmsg", "page", "security_inode_getxattr_lookup", "ext4"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Nearest(name, slices.Values(names), 5)
			}
		})
	}
}
