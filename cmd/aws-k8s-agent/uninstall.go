package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"

	"cnictl/daemon/config"
	"cnictl/daemon/uninstall"
)

// flags are the arguments besides --uninstall.
type flags struct{ dryRun, force, wait bool }

// uninstallFlags parses the flags in any order.
func uninstallFlags(args []string) (out flags, _ error) {
	f := flag.NewFlagSet("aws-k8s-agent", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	wanted := f.Bool("uninstall", false, "")
	f.BoolVar(&out.dryRun, "dry-run", false, "")
	f.BoolVar(&out.force, "force", false, "")
	f.BoolVar(&out.wait, "wait", false, "")
	if err := f.Parse(args); err != nil {
		return flags{}, err
	}
	switch {
	case f.NArg() > 0:
		return flags{}, errors.New("unknown argument " + f.Arg(0))
	case !*wanted:
		return flags{}, errors.New("--dry-run, --force and --wait belong to --uninstall")
	}
	return out, nil
}

func runUninstall(ctx context.Context, lookup func(string) (string, bool), f flags) int {
	// An invalid setting, which would stop the daemon, is no reason to leave things behind.
	c, _ := config.Load(lookup)
	return uninstall.Run(ctx, uninstall.Options{
		Paths: uninstall.Paths{
			Config:     directory(lookup, "HOST_CNI_CONFDIR_PATH", "/host/etc/cni/net.d"),
			Binaries:   directory(lookup, "HOST_CNI_BIN_PATH", "/host/opt/cni/bin"),
			Run:        uninstall.DefaultRun,
			Checkpoint: c.CheckpointPath,
			Host:       uninstall.DefaultHost,
			State:      uninstall.DefaultState,
		},
		VethPrefix: c.VethPrefix, DryRun: f.dryRun, Force: f.force,
		Out: os.Stdout, Err: os.Stderr, Log: slog.New(slog.DiscardHandler),
	})
}

func directory(lookup func(string) (string, bool), name, fallback string) string {
	if v, _ := lookup(name); v != "" {
		return v
	}
	return fallback
}
