package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// Sources of a setting, in order of precedence.
const (
	FromFlag        = "flag"
	FromEnvironment = "environment"
	FromFile        = "file"
	FromDefault     = "default"
)

// maxConfigFile bounds the settings file, in bytes.
const maxConfigFile = 64 << 10

// keysSetting is the only member of the file that is not a flag: the screens' keys by action.
const keysSetting = "keys"

// secretFlags are never read from the file, since people share it.
var secretFlags = []string{"token"}

// ConfigFile returns the settings file: $XDG_CONFIG_HOME/cnictl/config.yaml, else
// ~/.config/cnictl/config.yaml; "" if neither directory is known.
func (f *Factory) ConfigFile() string { return f.XDG("XDG_CONFIG_HOME", ".config", "config.yaml") }

// StateFile returns the file where the screens keep sort orders and filters between runs; ""
// if there is no place for it.
func (f *Factory) StateFile() string {
	return f.XDG("XDG_STATE_HOME", filepath.Join(".local", "state"), "tui.json")
}

// CacheDir returns the directory for cached data: a directory of cnictl's own below
// --cache-dir or KUBECACHEDIR if given, else below the user's cache directory; "" if none is
// known.
func (f *Factory) CacheDir() string {
	env, _ := f.Env("KUBECACHEDIR")
	if source := f.SourceOf("cache-dir"); env != "" || source != "" && source != FromDefault {
		return filepath.Join(f.Globals.Kube.CacheDir, "cnictl")
	}
	return f.XDG("XDG_CACHE_HOME", ".cache", "")
}

// XDG returns the path of a file of the tool, or of its directory if name is "": below the
// directory in the variable, else below the home directory; "" if neither is known.
func (f *Factory) XDG(variable, below, name string) string {
	if dir, _ := f.Env(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, "cnictl", name)
	}
	if home, _ := f.Env("HOME"); home != "" {
		return filepath.Join(home, below, "cnictl", name)
	}
	return ""
}

// fileSettings are the settings of a file, as text in the form that flags take.
type fileSettings struct {
	flags map[string][]string
	keys  map[string][]string
}

// readSettings reads the file; a missing file has no settings.
func (f *Factory) readSettings(known *pflag.FlagSet) (fileSettings, error) {
	name := f.ConfigFile()
	if name == "" {
		return fileSettings{}, nil
	}
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return fileSettings{}, nil
	}
	refuse := func(err error) error {
		return &Error{Code: ExitUsage, What: "invalid settings file " + name, Why: err.Error(),
			Do: f.Name + " config view lists the settings; fix or remove the file"}
	}
	if err != nil {
		return fileSettings{}, refuse(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxConfigFile+1))
	if err != nil {
		return fileSettings{}, refuse(err)
	}
	settings, err := parseSettings(text, known)
	if err != nil {
		return fileSettings{}, refuse(err)
	}
	return settings, nil
}

// parseSettings parses the YAML of a file: flags by name, and keys. It rejects unknown
// members.
func parseSettings(text []byte, known *pflag.FlagSet) (fileSettings, error) {
	if len(text) > maxConfigFile {
		return fileSettings{}, fmt.Errorf("it has more than %d bytes", maxConfigFile)
	}
	if bytes.IndexByte(text, 0) >= 0 {
		return fileSettings{}, errors.New("it is not a text file")
	}
	var members map[string]any
	if err := yaml.UnmarshalStrict(text, &members); err != nil {
		return fileSettings{}, fmt.Errorf("it is not a list of NAME: VALUE: %w", err)
	}
	s := fileSettings{flags: map[string][]string{}, keys: map[string][]string{}}
	names := make([]string, 0, len(members))
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names) // report the same mistake first each time
	for _, name := range names {
		value := members[name]
		switch {
		case slices.Contains(secretFlags, name):
			return fileSettings{}, fmt.Errorf("%s is a credential, which is not read from this file", name)
		case name == keysSetting:
			keys, ok := value.(map[string]any)
			if !ok {
				return fileSettings{}, errors.New("keys: expected a list of ACTION: KEY")
			}
			for action, key := range keys {
				texts, err := settingTexts(key)
				if err != nil {
					return fileSettings{}, fmt.Errorf("keys: %s: %w", action, err)
				}
				s.keys[action] = texts
			}
		case known.Lookup(name) == nil || name == "help":
			return fileSettings{}, fmt.Errorf("unknown setting %q", name)
		default:
			texts, err := settingTexts(value)
			if err != nil {
				return fileSettings{}, fmt.Errorf("%s: %w", name, err)
			}
			s.flags[name] = texts
		}
	}
	return s, nil
}

// settingTexts returns a value, or the values of a list, as text in the form that flags take.
func settingTexts(value any) ([]string, error) {
	switch v := value.(type) {
	case string:
		return []string{v}, nil
	case bool, int64, float64:
		return []string{fmt.Sprint(v)}, nil
	case []any:
		var out []string
		for _, item := range v {
			one, err := settingTexts(item)
			if err != nil || len(one) != 1 {
				return nil, errors.New("expected a list of strings")
			}
			out = append(out, one...)
		}
		return out, nil
	}
	return nil, errors.New("expected a string, a number, true, false, or a list of strings")
}

// Settle sets each flag that is not on the command line from the environment, else from the
// file.
func (f *Factory) Settle(cmd *cobra.Command) error {
	flags := cmd.Flags()
	f.command, f.flags, f.sources = cmd.CommandPath(), flags, map[string]string{}
	flags.VisitAll(func(flag *pflag.Flag) {
		f.sources[flag.Name] = FromDefault
		if flag.Changed {
			f.sources[flag.Name] = FromFlag
		}
	})
	if err := fromEnv(flags, f.Env, f.sources); err != nil {
		return err
	}
	settings, err := f.readSettings(cmd.Root().PersistentFlags())
	if err != nil {
		return err
	}
	f.keys = settings.keys
	for name, values := range settings.flags {
		flag := flags.Lookup(name)
		if flag == nil || flag.Changed {
			continue
		}
		for _, value := range values {
			if err := flags.Set(name, value); err != nil {
				return &Error{Code: ExitUsage, What: fmt.Sprintf("%s: %s: invalid value %s", f.ConfigFile(), name, value), Why: flagText(err)}
			}
		}
		f.sources[name] = FromFile
	}
	return nil
}

// Keys are the keys of the screens in the settings file, by action.
func (f *Factory) Keys() map[string][]string { return f.keys }

// SourceOf returns where the value of a flag came from.
func (f *Factory) SourceOf(flag string) string { return f.sources[flag] }

// Secret reports whether a flag's value must not be shown.
func Secret(flag string) bool { return slices.Contains(secretFlags, flag) }

// EnvName returns the environment variable of a flag.
func EnvName(flag string) string {
	return "CNICTL_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// EnvAs annotates a flag with its variable, if that of its name belongs to a flag of other commands.
const EnvAs = "env-as"

// fromEnv sets every flag that was not given from its variable, if that is set and not empty,
// and records the source.
func fromEnv(flags *pflag.FlagSet, env Lookup, sources map[string]string) error {
	var first error
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed || flag.Name == "help" || flag.Name == "version" || first != nil {
			return
		}
		name := EnvName(flag.Name)
		if as := flag.Annotations[EnvAs]; len(as) == 1 {
			name = as[0]
		}
		value, _ := env(name)
		if value == "" {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			if Secret(flag.Name) {
				value = "…"
			}
			first = &Error{Code: ExitUsage, What: "invalid value in " + name + "=" + value, Why: flagText(err)}
		}
		sources[flag.Name] = FromEnvironment
	})
	return first
}
