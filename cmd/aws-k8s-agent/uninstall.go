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

// uninstallFlags are the arguments behind --uninstall, in any order.
func uninstallFlags(args []string) (dryRun, force bool, _ error) {
	f := flag.NewFlagSet("aws-k8s-agent", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	wanted := f.Bool("uninstall", false, "")
	f.BoolVar(&dryRun, "dry-run", false, "")
	f.BoolVar(&force, "force", false, "")
	if err := f.Parse(args); err != nil {
		return false, false, err
	}
	switch {
	case f.NArg() > 0:
		return false, false, errors.New("unknown argument " + f.Arg(0))
	case !*wanted:
		return false, false, errors.New("--dry-run and --force belong to --uninstall")
	}
	return dryRun, force, nil
}

func runUninstall(ctx context.Context, lookup func(string) (string, bool), dryRun, force bool) int {
	// A setting that the daemon would refuse is no reason to leave things behind.
	c, _ := config.Load(lookup)
	return uninstall.Run(ctx, uninstall.Options{
		Paths: uninstall.Paths{
			Config:     directory(lookup, "HOST_CNI_CONFDIR_PATH", "/host/etc/cni/net.d"),
			Binaries:   directory(lookup, "HOST_CNI_BIN_PATH", "/host/opt/cni/bin"),
			Run:        uninstall.DefaultRun,
			Checkpoint: c.CheckpointPath,
			Egress:     uninstall.DefaultEgress(),
		},
		VethPrefix: c.VethPrefix, DryRun: dryRun, Force: force,
		Out: os.Stdout, Err: os.Stderr, Log: slog.New(slog.DiscardHandler),
	})
}

func directory(lookup func(string) (string, bool), name, fallback string) string {
	if v, _ := lookup(name); v != "" {
		return v
	}
	return fallback
}
