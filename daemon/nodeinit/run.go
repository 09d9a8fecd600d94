package nodeinit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"cnictl/daemon/config"
	"cnictl/daemon/install"
	"cnictl/daemon/internal/hostnet"
	"cnictl/daemon/internal/imds"
	"cnictl/daemon/internal/logging"
)

// Deps holds what the process passes to Run. Empty paths mean the image's defaults.
type Deps struct {
	Config   config.Config
	Problems []config.Problem // of loading Config
	Dir      string           // with the plugins; "" = the working directory
	Log      io.Writer
	ProcSys  string // "" = /proc/sys
}

// The metadata service may become available only after the container starts, so it is tried
// this often, with pauses that grow to a second.
const (
	attempts      = 10
	metadataLimit = time.Minute
)

// Run prepares the node. It has logged any error that it returns.
func Run(ctx context.Context, d Deps) error {
	log := logging.Console(d.Log)
	if d.Dir == "" {
		d.Dir = "."
	}
	if d.ProcSys == "" {
		d.ProcSys = "/proc/sys"
	}
	err := d.run(ctx, log)
	if err != nil {
		log.Error(err.Error()) //nolint:sloglint // the fatal reason is the message people search for
		return err
	}
	log.Info(textDone)
	return nil
}

func (d Deps) run(ctx context.Context, log *slog.Logger) error {
	for _, p := range d.Problems {
		if p.ReadBy(config.Init) {
			log.Warn("setting has a problem", slog.String("detail", p.String()))
		}
	}
	installed, err := install.Programs(d.Dir, d.Config.CNIBinDir, Self)
	if err != nil {
		return fmt.Errorf(textBinaries+": %w", err)
	}
	log.Info(textInstalled+d.Config.CNIBinDir, slog.Int("files", len(installed))) //nolint:sloglint // one sentence for people

	link, err := primaryLink(ctx, log)
	if err != nil {
		return fmt.Errorf(textPrimary+": %w", err)
	}
	log.Info(textFoundLink + link) //nolint:sloglint // upstream's line
	for _, s := range wanted(d.Config, link) {
		if err := s.write(d.ProcSys); err != nil {
			return err
		}
		log.Info(fmt.Sprintf(textUpdated, s.Path, s.Value)) //nolint:sloglint // upstream's line
	}
	return nil
}

// primaryLink returns the name of the primary ENI's link.
func primaryLink(ctx context.Context, log *slog.Logger) (string, error) {
	metadata := imds.New(imds.Config{Attempts: attempts, Timeout: metadataLimit})
	mac, err := metadata.PrimaryMAC(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; instance metadata (IMDSv2) must be enabled for the instance and answer on this node", err)
	}
	log.Info(textFoundMAC + mac) //nolint:sloglint // upstream's line
	link, err := hostnet.LinkName(mac)
	if errors.Is(err, hostnet.ErrNoLink) {
		return "", fmt.Errorf("no link of this node has MAC address %s, which instance metadata gives for the primary ENI; the init container must run in the node's network namespace (hostNetwork)", mac)
	}
	return link, err
}
