// Command gen turns instance-limits.csv into the table of package limits.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	in := flag.String("in", "instance-limits.csv", "file with the limits")
	out := flag.String("out", "zz_generated.limits.go", "the Go file to write")
	flag.Parse()
	if err := run(*in, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(in, out string) error {
	facts, err := os.ReadFile(in)
	if err != nil {
		return err
	}
	code, err := render(facts)
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return os.WriteFile(out, code, 0o644)
}
