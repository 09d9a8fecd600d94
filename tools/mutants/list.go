package main

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// fewest is how many mutants there are at least, and fewestIn in each area where most tests
// compare whole texts: a list that may shrink measures nothing.
const (
	fewest   = 64
	fewestIn = 4
)

var areas = []string{"daemon/fleet", "tui", "doctor", "capacity", "deploy"}

// mutant is a change that tests must notice.
type mutant struct {
	ID, What string
	Place    string   // the directory of a package, or a file that is not Go
	Name     string   // in the package: a function, Type.Method, variable, constant or type
	Packages []string // whose tests run
	Run      string   // only these tests; "" for all
	Old, New string
}

func (m mutant) where() string {
	if m.Name == "" {
		return m.Place
	}
	return m.Place + " " + m.Name
}

// parse reads a list. The mutant named "golden" is no mutant: it is the change that makes
// comparisons with golden files pass, and applies always.
func parse(text []byte) (all []mutant, golden mutant, err error) {
	var m *mutant
	for i, line := range bytes.Split(text, []byte("\n")) {
		key, rest, _ := strings.Cut(string(line), " ")
		if key == "##" {
			id, what, _ := strings.Cut(rest, " ")
			if slices.ContainsFunc(all, func(o mutant) bool { return o.ID == id }) {
				return nil, golden, fmt.Errorf("line %d: %s is there twice", i+1, id)
			}
			all = append(all, mutant{ID: id, What: what})
			m = &all[len(all)-1]
			continue
		}
		if key == "" || key == "#" {
			continue
		}
		if m == nil {
			return nil, golden, fmt.Errorf("line %d: %q before the first mutant", i+1, line)
		}
		switch key {
		case "in":
			m.Place, m.Name, _ = strings.Cut(rest, " ")
		case "test":
			m.Packages = strings.Fields(rest)
		case "run":
			m.Run = rest
		case "-":
			m.Old = join(m.Old, rest)
		case "+":
			m.New = join(m.New, rest)
		default:
			return nil, golden, fmt.Errorf("line %d: %q is none of ## in test run - +", i+1, key)
		}
	}
	for i := range all {
		if err := all[i].complete(); err != nil {
			return nil, golden, fmt.Errorf("%s: %w", all[i].ID, err)
		}
	}
	i := slices.IndexFunc(all, func(m mutant) bool { return m.ID == "golden" })
	if i < 0 {
		return nil, golden, errors.New(`there is no change named "golden"`)
	}
	golden = all[i]
	return slices.Delete(all, i, i+1), golden, nil
}

func join(have, line string) string {
	if have == "" {
		return line
	}
	return have + "\n" + line
}

func (m *mutant) complete() error {
	switch {
	case m.What == "" || m.Place == "" || m.Old == "":
		return errors.New(`it needs a text, a line "in" and one that starts with "-"`)
	case m.Name == "" && path.Ext(m.Place) == "":
		return fmt.Errorf("in %s: which function?", m.Place)
	case m.Name == "" && len(m.Packages) == 0:
		return fmt.Errorf(`%s is in no package: it needs a line "test"`, m.Place)
	case strings.Join(strings.Fields(m.Old), " ") == strings.Join(strings.Fields(m.New), " "):
		return errors.New("it changes nothing")
	}
	if len(m.Packages) == 0 {
		m.Packages = []string{m.Place}
	}
	return nil
}

// enough reports where there are too few mutants.
func enough(all []mutant) (problems []string) {
	if len(all) < fewest {
		problems = append(problems, fmt.Sprintf("%d mutants, and there must be at least %d: one that loses its code gets a successor", len(all), fewest))
	}
	for _, area := range areas {
		n := 0
		for _, m := range all {
			if m.Place == area || strings.HasPrefix(m.Place, area+"/") {
				n++
			}
		}
		if n < fewestIn {
			problems = append(problems, fmt.Sprintf("%d mutants in %s, and there must be at least %d", n, area, fewestIn))
		}
	}
	return problems
}
