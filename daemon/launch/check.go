package launch

import (
	"errors"
	"log/slog"
	"slices"

	"cnictl/daemon/config"
)

// check reports problems of settings. Its error joins the fatal ones in upstream's order:
// first those that the entrypoint refuses, then those that the daemon would refuse, so that
// they are logged before anything on the node is touched.
func check(c config.Config, loaded []config.Problem, log *slog.Logger) error {
	all := slices.Concat(loaded, config.ValidateEntrypoint(c), config.Validate(c, config.Facts{}))
	var fatal []error
	logged := map[string]bool{} // one line for a setting that both refuse
	for _, p := range config.Fatal(all) {
		if !logged[p.Variable] {
			fatal = append(fatal, errors.New(p.String()))
		}
		logged[p.Variable] = true
	}
	for _, p := range all {
		if !logged[p.Variable] && p.ReadBy(config.Entrypoint) {
			log.Warn("setting has a problem", slog.String("detail", p.String()))
			logged[p.Variable] = true
		}
	}
	return errors.Join(fatal...)
}
