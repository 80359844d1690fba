// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
)

// aloneSide is the flag by which this program runs one side of a row in a process of its own.
const aloneSide = "alone-side"

// serve is the whole life of such a process: for each line of its input it takes one sample and writes it as a line.
func serve(pick *regexp.Regexp, side int) error {
	for _, r := range rows() {
		if !pick.MatchString(r.name) {
			continue
		}
		do, err := [2]func() (work, error){r.ours, r.theirs}[side]()
		if err != nil {
			return err
		}
		asked, answers := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
		for asked.Scan() {
			one, err := sample(do, r.n)
			if err != nil {
				return err
			}
			if err := answers.Encode(one); err != nil {
				return err
			}
		}
		return asked.Err()
	}
	return fmt.Errorf("no row matches %q", pick)
}

// remote is a process that serves one side of a row.
type remote struct {
	cmd     *exec.Cmd
	ask     io.WriteCloser
	answers *json.Decoder
}

func (r row) remote(side int) (*remote, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &remote{cmd: exec.Command(self, "-only", "^"+regexp.QuoteMeta(r.name)+"$", "-"+aloneSide, strconv.Itoa(side))}
	p.cmd.Stderr = os.Stderr
	if p.ask, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.answers = json.NewDecoder(out)
	return p, p.cmd.Start()
}

func (p *remote) sample() (one map[unit]float64, err error) {
	if _, err := io.WriteString(p.ask, "\n"); err != nil {
		return nil, err
	}
	return one, p.answers.Decode(&one)
}

// end lets the process end by itself and waits for it.
func (p *remote) end() error {
	return errors.Join(p.ask.Close(), p.cmd.Wait())
}
