// SPDX-FileCopyrightText: The Wherry Authors
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/wherry-dev/wherry/test/apiserver/controllers"
	"github.com/wherry-dev/wherry/test/apiserver/server"
	"github.com/wherry-dev/wherry/test/apiserver/storage/file"
)

// defaultDir is where data goes if no folder is named. make run uses it too.
const defaultDir = ".wherry"

// commandLine is what the flags and arguments say.
type commandLine struct {
	set *flag.FlagSet

	dataDir    string
	storage    string
	port       int
	kubeconfig string
	readyJSON  bool
	stdinEOF   bool
	detach     bool
	stock      bool
	etcd       bool
	verbosity  int
	without    list
	apiserver  list
	to         string
	only       list

	command string   // "", exec, check, repair, controllers, version
	args    []string // what exec runs
}

// beside are the controllers that run in the server's process; --without names those to leave out, or all.
var beside = []string{controllers.Namespaces, controllers.Garbage, controllers.ServiceAccounts}

const all = "all"

// list is a flag that may be given more than once; each value may hold several, separated by commas, unless whole.
type list struct {
	values []string
	whole  bool
}

func (l *list) String() string { return strings.Join(l.values, ",") }

func (l *list) Set(value string) error {
	if l.whole {
		l.values = append(l.values, value)
		return nil
	}
	for v := range strings.SplitSeq(value, ",") {
		if v = strings.TrimSpace(v); v != "" {
			l.values = append(l.values, v)
		}
	}
	return nil
}

var errHelp = errors.New("help was asked for")

// parse reads the command line. Flags may stand before the command and, save for exec, after it.
func parse(args []string) (*commandLine, error) {
	c := &commandLine{set: flag.NewFlagSet("apiserver", flag.ContinueOnError), apiserver: list{whole: true}}
	c.set.SetOutput(io.Discard)
	c.set.StringVar(&c.dataDir, "data-dir", "", "`folder` that holds the data; made if missing (default "+defaultDir+", none with --storage memory)")
	c.set.StringVar(&c.storage, "storage", file.Durable.String(), "what a write waits for: durable (the disk), relaxed (the operating system) or memory (nothing is kept)")
	c.set.IntVar(&c.port, "port", 0, "`port` on 127.0.0.1 to listen on; 0 takes a free one")
	c.set.StringVar(&c.kubeconfig, "kubeconfig", "", "`file` to write the kubeconfig to while the server runs (default kubeconfig in the data folder); of controllers: the one to read")
	c.set.BoolVar(&c.readyJSON, "ready-json", false, "print the ready line as JSON, with the kubeconfig in it")
	c.set.BoolVar(&c.stdinEOF, "exit-on-stdin-eof", false, "stop when standard input ends")
	c.set.BoolVar(&c.detach, "detach", false, "go on when the program that started this one ends")
	c.set.Var(&c.without, "without", "leave out controllers of this `name`: "+strings.Join(beside, ", ")+", or "+all)
	c.set.Var(&c.apiserver, "apiserver-flag", "hand `name=value` to kube-apiserver; may be given more than once")
	c.set.BoolVar(&c.stock, "stock", false, "assemble the server as kube-apiserver's own command does; slower, for comparison")
	if server.HasEtcd() {
		c.set.BoolVar(&c.etcd, "etcd", false, "store in an etcd in this process; needs --stock --storage memory")
	}
	c.set.IntVar(&c.verbosity, "v", -1, "log what Kubernetes' code logs up to this `level` to standard error")
	c.set.StringVar(&c.to, "to", "", "of repair: the new `folder`")
	c.set.Var(&c.only, "only", "of controllers: the `names`, separated by commas: "+strings.Join(controllers.Names(), ", "))

	rest, err := c.flags(args)
	if err != nil || len(rest) == 0 {
		return c, err
	}
	c.command, rest = rest[0], rest[1:]
	switch c.command {
	case "exec":
		if len(rest) > 0 && rest[0] == "--" {
			rest = rest[1:]
		}
		c.args = rest
		if len(rest) == 0 {
			return c, errors.New("exec needs a command: apiserver [flags] exec -- COMMAND ARGS")
		}
		if c.stdinEOF {
			return c, errors.New("--exit-on-stdin-eof does not go with exec: standard input belongs to the command")
		}
		if c.readyJSON {
			return c, errors.New("--ready-json does not go with exec: standard output belongs to the command")
		}
		return c, nil
	case "check", "repair", "controllers", "version":
		if rest, err = c.flags(rest); err != nil {
			return c, err
		}
		if len(rest) > 0 {
			return c, fmt.Errorf("%s takes no argument %q", c.command, rest[0])
		}
		return c, nil
	}
	return c, fmt.Errorf("there is no command %q: exec, check, repair, controllers and version are", c.command)
}

func (c *commandLine) flags(args []string) ([]string, error) {
	if err := c.set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, errHelp
		}
		return nil, err
	}
	return c.set.Args(), nil
}

// dir returns the data folder, absolute, or "" in memory mode.
func (c *commandLine) dir() (string, error) {
	dir := c.dataDir
	if dir == "" {
		if c.storage == file.Memory.String() {
			return "", nil
		}
		dir = defaultDir
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find the data folder %s: %w", dir, err)
	}
	return abs, nil
}

// options returns what the server is to be.
func (c *commandLine) options() (server.Options, error) {
	mode, err := file.ParseMode(c.storage)
	if err != nil {
		return server.Options{}, err
	}
	dir, err := c.dir()
	if err != nil {
		return server.Options{}, err
	}
	o := server.Options{DataDir: dir, Storage: mode, Port: c.port, Flags: c.apiserver.values, Stock: c.stock, Etcd: c.etcd}
	for _, name := range c.without.values {
		if name != all && !slices.Contains(beside, name) {
			return o, fmt.Errorf("--without %s: there are %s and %s", name, strings.Join(beside, ", "), all)
		}
		o.NoNamespaceDeleter = o.NoNamespaceDeleter || name == controllers.Namespaces || name == all
		o.NoGarbageCollector = o.NoGarbageCollector || name == controllers.Garbage || name == all
		o.NoServiceAccounts = o.NoServiceAccounts || name == controllers.ServiceAccounts || name == all
	}
	return o, nil
}

const usage = `Runs a real Kubernetes API server in one process, without etcd, on loopback.

  apiserver [flags]                         serve until told to stop
  apiserver [flags] exec -- COMMAND ARGS    serve while COMMAND runs, with KUBECONFIG set; exit as COMMAND does
  apiserver check --data-dir DIR            tell whether a data folder is in order
  apiserver repair --data-dir DIR --to NEW  save what can be saved of a damaged one to a new folder
  apiserver controllers --only NAME,...     run Kubernetes' own controllers against --kubeconfig FILE
  apiserver version                         print the Kubernetes version

Flags:
`

func (c *commandLine) help(w io.Writer) {
	fmt.Fprint(w, usage)
	c.set.VisitAll(func(f *flag.Flag) {
		name, text := flag.UnquoteUsage(f)
		head := "--" + f.Name
		if name != "" {
			head += " " + strings.ToUpper(name)
		}
		fmt.Fprintf(w, "  %-26s %s", head, text)
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "-1" {
			fmt.Fprintf(w, " (default %s)", f.DefValue)
		}
		fmt.Fprintln(w)
	})
}
