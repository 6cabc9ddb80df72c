package private_test

import (
	"os"
	"strings"
	"testing"

	"github.com/bpfprologue/bpfprologue/internal/private"
)

func TestText(t *testing.T) {
	n := private.Names{"/srv/people/ada": "~", "ada": "USER", "engine.example": "HOST", "engine": "HOST"}
	for text, want := range map[string]string{
		"/srv/people/ada/src/a.c:3":                                               "~/src/a.c:3",
		"/srv/people/adam/a.c":                                                    "/srv/people/adam/a.c",
		"/home/lord.byron/a.c, /home/b c":                                         "~/a.c, ~ c",
		"open /root/x: no, /rooted, /Users/m/y":                                   "open ~/x: no, /rooted, ~/y",
		"ada@engine.example, engine: ada_1":                                       "USER@HOST, HOST: ada_1",
		"engines of Canada, ext4_engineer":                                        "engines of Canada, ext4_engineer",
		"--pack-url=http://me:tok3n@127.0.0.1:9/x --pack-dir=/p":                  "--pack-url=http://127.0.0.1:9/... --pack-dir=/p",
		"--pack-url=https://me@a.net:1,http://b.net/?k=v,http://b.net/":           "--pack-url=https://a.net:1,http://b.net/...,http://b.net",
		"Get \"http://b.net?key=tok3n\": (s3://k:s@[::1]:80/x/y): no; a://b.net.": "Get \"http://b.net/...\": (s3://[::1]:80/...): no; a://b.net.",
		"http://me:p@s@b.net/x, http://me:p/s@b.net/x":                            "http://b.net/..., http:///...",
		"": "",
	} {
		if got := n.Text(text); got != want {
			t.Errorf("%q becomes %q, not %q", text, got, want)
		}
	}
}

// TestOwn: names of this user and machine are gone, and root is no name.
func TestOwn(t *testing.T) {
	t.Setenv("HOME", "/srv/people/ada")
	t.Setenv("SUDO_USER", "ada-lovelace")
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	got := private.Own().Text("/srv/people/ada/x of ada-lovelace as root on " + host)
	if !strings.HasPrefix(got, "~/x of USER as root on ") || host != "localhost" && strings.HasSuffix(got, " "+host) {
		t.Errorf("%q", got)
	}
}
