package introspect

// ConfigRow is one setting of the daemon.
type ConfigRow struct {
	Name      string  `json:"name"`      // of the environment variable
	Declared  *string `json:"declared"`  // as found in the environment; null = not set
	Effective string  `json:"effective"` // what the daemon acts on
	Source    string  `json:"source"`    // env, default, …
	Problem   string  `json:"problem"`   // "" = none
}

// NodeConfig answers /v1/config.
type NodeConfig struct {
	APIVersion string      `json:"apiVersion"`
	Kind       string      `json:"kind"`
	Items      []ConfigRow `json:"items"`
}
