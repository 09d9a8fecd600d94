package launch

import (
	"errors"
	"log/slog"
	"slices"

	"cnictl/daemon/config"
)

// check reports settings. Those that forbid a start are its error, in upstream's
// order: what the entrypoint refuses, then what the daemon would refuse, which is so told
// before anything on the node is touched.
func check(c config.Config, loaded []config.Problem, log *slog.Logger) error {
	all := slices.Concat(loaded, config.ValidateEntrypoint(c), config.Validate(c, config.Facts{}))
	var fatal []error
	told := map[string]bool{} // one line for what both refuse
	for _, p := range config.Fatal(all) {
		if !told[p.Variable] {
			fatal = append(fatal, errors.New(p.String()))
		}
		told[p.Variable] = true
	}
	for _, p := range all {
		if !told[p.Variable] && p.ReadBy(config.Entrypoint) {
			log.Warn("setting has a problem", slog.String("detail", p.String()))
			told[p.Variable] = true
		}
	}
	return errors.Join(fatal...)
}
