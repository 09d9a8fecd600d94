package launch

import (
	"errors"
	"log/slog"
	"slices"

	"cnictl/daemon/config"
)

// check reports settings. Those that forbid a start are its error, in upstream's
// order: what the entrypoint refuses, then what the daemon would refuse, which is so logged
// before anything on the node is touched.
func check(c config.Config, loaded []config.Problem, log *slog.Logger) error {
	all := slices.Concat(loaded, config.ValidateEntrypoint(c), config.Validate(c, config.Facts{}))
	var fatal []error
	logged := map[string]bool{} // one line for what both refuse
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
