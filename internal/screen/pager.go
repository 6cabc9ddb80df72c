package screen

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
)

// Pager is a program that shows an answer page by page on a terminal.
type Pager struct {
	cmd *exec.Cmd
	to  io.WriteCloser
}

// StartPager starts the program that PAGER names, less by default. It returns nil if the user wants none,
// or there is none.
func StartPager() (*Pager, error) {
	program, chosen := os.LookupEnv("PAGER")
	if !chosen {
		program = "less"
	}
	if program = strings.TrimSpace(program); program == "" || program == "cat" {
		return nil, nil
	}
	// As with git and man, the value is a command with arguments.
	c := exec.Command("sh", "-c", "exec "+program)
	c.Env = os.Environ()
	if _, set := os.LookupEnv("LESS"); !set {
		// Quit if all fits one screen, keep colors, leave the screen as it is.
		c.Env = append(c.Env, "LESS=FRX")
	}
	giveScreen(c)
	to, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	if _, err := exec.LookPath(strings.Fields(program)[0]); err != nil && !chosen {
		return nil, nil
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	return &Pager{c, to}, nil
}

// Write hands on what is to be shown.
func (p *Pager) Write(b []byte) (int, error) { return p.to.Write(b) }

// Wait ends the answer and returns when the user has left the pager.
func (p *Pager) Wait() error {
	err := p.to.Close()
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, p.cmd.Wait())
}
