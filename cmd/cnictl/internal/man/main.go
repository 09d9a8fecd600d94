// Command man writes the manual pages of cnictl into a directory, as of SOURCE_DATE_EPOCH.
package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra/doc"

	"cnictl/cmd/cnictl/internal/cli"
	"cnictl/cmd/cnictl/internal/root"
)

func main() {
	if err := run(os.Args[1:], os.Getenv("SOURCE_DATE_EPOCH")); err != nil {
		fmt.Fprintln(os.Stderr, "man:", err)
		os.Exit(1)
	}
}

func run(args []string, epoch string) error {
	if len(args) != 1 {
		return fmt.Errorf("want one directory, have %q", args)
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	date := time.Unix(seconds, 0).UTC()
	cmd := root.New(&cli.Factory{
		Streams: &cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr},
		Env:     func(string) (string, bool) { return "", false },
		Now:     func() time.Time { return date },
		Name:    "cnictl",
	})
	cmd.DisableAutoGenTag = true
	return doc.GenManTree(cmd,
		&doc.GenManHeader{Title: "CNICTL", Section: "1", Source: "cnictl", Manual: "cnictl manual", Date: &date}, args[0])
}
