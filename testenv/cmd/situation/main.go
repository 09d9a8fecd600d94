// Situation prints the evidence file of a situation, for cnictl doctor --evidence.
//
//	situation FILE   print the evidence file of the situation in FILE; - is standard input
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"cnictl/doctor/evidence/file"
	"cnictl/testenv/situation"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "situation:", err)
		os.Exit(1)
	}
}

const usage = `Situation prints the evidence file of a situation.

  go run ./testenv/cmd/situation FILE > evidence.yaml     (- is standard input)
  cnictl doctor --evidence evidence.yaml

A situation is the true state of a cluster, the world, and what was read of it, the sources. This
one is a node whose subnet is full, and which nobody may ask for its metrics:

  schemaVersion: 1
  at: 2026-11-21T14:02:11Z
  base: healthy
  world:
    subnets: [{id: subnet-a, available: 0}]
    enis: [{id: eni-a, ips: 9, assigned: 9}]
  sources:
    log.ipamd:
      lines:
        - {at: -40s, level: error, msg: InsufficientFreeAddressesInSubnet}
    kern.rule: {without: [{priority: 1024}]}
    metrics: {missing: forbidden}

With base: healthy, a source that is not named shows what the world's healthy node would show; with
base: none, it was not read. "later" has what differs at the second reading, "nodes" several nodes.
doctor/causes/testdata has a situation for each cause.
`

func run(args []string, in io.Reader, out, help io.Writer) error {
	flags := flag.NewFlagSet("situation", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.Usage = func() { fmt.Fprint(help, usage) }
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return nil
	case err != nil:
		return err
	case flags.NArg() != 1:
		return errors.New("want one FILE, or - for standard input; -h shows an example")
	}
	name := flags.Arg(0)
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, file.MaxBytes+1))
	if err != nil {
		return err
	}
	ev, err := situation.Load(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if data, err = file.Save(ev); err != nil {
		return err
	}
	_, err = out.Write(data)
	return err
}
