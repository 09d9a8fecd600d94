package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// runFuzz runs every fuzz target in turn: go test accepts one at a time.
func runFuzz(ctx context.Context, o options, pkgs []pkg) error {
	ran, failed := 0, 0
	for _, p := range pkgs {
		for _, name := range p.Fuzz {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fmt.Printf("=== fuzz %s %s\n", p.ImportPath, name)
			cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-fuzz", "^"+name+"$", "-fuzztime", o.fuzz.String(), p.ImportPath)
			cmd.Dir = o.root
			cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
			ran++
			if err := cmd.Run(); err != nil {
				failed++
			}
		}
	}
	fmt.Printf("%d passed, %d failed, 0 skipped\n", ran-failed, failed)
	if failed > 0 {
		return errFailed
	}
	return nil
}
