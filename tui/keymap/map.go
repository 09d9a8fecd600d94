package keymap

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Map finds the action of a key. The zero Map has no keys.
type Map struct {
	Sections []Section
	Pages    []PageKeys
	actions  map[string]string // key → action of the app
}

// Check validates the user's keys. The error is one line.
func Check(own map[string][]string) error {
	_, err := New(own)
	return err
}

// New makes the map from the tables and the user's keys by action, where an action of one
// page is page.action. A key that the user assigns is removed from its default action.
// Unknown actions and keys, and a key assigned to two actions, are errors.
func New(own map[string][]string) (Map, error) {
	m := Map{Sections: Table(), Pages: PageTable(), actions: map[string]string{}}
	for _, action := range slices.Sorted(maps.Keys(own)) {
		for _, k := range own[action] {
			if err := checkKey(k); err != nil {
				return Map{}, fmt.Errorf("keys: %s: %w", action, err)
			}
		}
	}
	if err := m.rebind(own); err != nil {
		return Map{}, err
	}
	if b, _ := m.Binding(Quit); len(b.Keys) == 0 {
		return Map{}, errors.New("keys: quit needs a key")
	}
	return m, m.rebindPages(own)
}

// rebind gives the app's actions the user's keys.
func (m *Map) rebind(own map[string][]string) error {
	known := map[string]bool{}
	for i := range m.Sections {
		for j := range m.Sections[i].Bindings {
			b := &m.Sections[i].Bindings[j]
			known[b.Action] = true
			keys, ok := own[b.Action]
			if !ok {
				continue
			}
			b.rebind(keys)
			for _, k := range keys {
				if other, taken := m.actions[k]; taken && other != b.Action {
					return fmt.Errorf("keys: %q is bound to both %s and %s", k, other, b.Action)
				}
				m.actions[k] = b.Action
			}
		}
	}
	for _, p := range m.Pages {
		for _, b := range p.Bindings {
			known[p.Page+"."+b.Action] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		if !known[name] {
			return fmt.Errorf("keys: no action named %q; docs/tui.md lists all actions", name)
		}
	}
	for i := range m.Sections {
		for j := range m.Sections[i].Bindings {
			b := &m.Sections[i].Bindings[j]
			if _, ok := own[b.Action]; ok {
				continue
			}
			b.leave(func(k string) bool { _, taken := m.actions[k]; return taken })
			for _, k := range b.Keys {
				m.actions[k] = b.Action
			}
		}
	}
	return nil
}

// rebindPages gives the pages' actions the user's keys.
func (m *Map) rebindPages(own map[string][]string) error {
	claimed := map[string]bool{} // keys that the user assigned to the app's actions
	for action, keys := range own {
		if _, ok := m.Binding(action); ok {
			for _, k := range keys {
				claimed[k] = true
			}
		}
	}
	for _, p := range m.Pages {
		mine := map[string]string{}
		for i := range p.Bindings {
			b := &p.Bindings[i]
			keys, ok := own[p.Page+"."+b.Action]
			if !ok {
				continue
			}
			b.rebind(keys)
			for _, k := range keys {
				if app := m.actions[k]; slices.Contains(appRow, app) {
					return fmt.Errorf("keys: %q of %s.%s is %s on every screen", k, p.Page, b.Action, app)
				}
				if other, taken := mine[k]; taken && other != b.Action {
					return fmt.Errorf("keys: %q is bound to both %s.%s and %s.%s", k, p.Page, other, p.Page, b.Action)
				}
				mine[k] = b.Action
			}
		}
		for i := range p.Bindings {
			b := &p.Bindings[i]
			if _, ok := own[p.Page+"."+b.Action]; !ok {
				b.leave(func(k string) bool { return claimed[k] || mine[k] != "" })
			}
		}
	}
	return nil
}

// Action returns what a key does on a page with the given bindings, "" if nothing. The
// page's keys come first, but never hide the app's reserved ones.
func (m Map) Action(key string, page []Binding) string {
	action := m.actions[key]
	if slices.Contains(appRow, action) {
		return action
	}
	for _, b := range page {
		if slices.Contains(b.Keys, key) {
			return b.Action
		}
	}
	return action
}

// Page returns the keys of a page, the user's in place of the defaults.
func (m Map) Page(name string) []Binding {
	for _, p := range m.Pages {
		if p.Page == name {
			return p.Bindings
		}
	}
	return nil
}

// Live returns the map without the section of recording keys, for the help.
func (m Map) Live() Map {
	m.Sections = slices.DeleteFunc(slices.Clone(m.Sections), func(s Section) bool { return s.Title == Recording })
	return m
}

// Binding returns the binding of an action of the app.
func (m Map) Binding(action string) (Binding, bool) {
	for _, s := range m.Sections {
		for _, b := range s.Bindings {
			if b.Action == action {
				return b, true
			}
		}
	}
	return Binding{}, false
}

// Shown returns an action's keys as help shows them.
func (m Map) Shown(action string) string {
	b, _ := m.Binding(action)
	return b.Shown
}

// First returns an action's first key as help shows it, "" if it has none.
func (m Map) First(action string) string {
	first, _, _ := strings.Cut(m.Shown(action), " ")
	return first
}

// Conflicts returns the invalid keys of a page: bound twice on the page, or reserved by
// the app.
func (m Map) Conflicts(page []Binding) []string {
	var out []string
	seen := map[string]string{}
	for _, b := range page {
		for _, k := range b.Keys {
			if other, ok := seen[k]; ok {
				out = append(out, fmt.Sprintf("%q is both %s and %s", k, other, b.Action))
			}
			seen[k] = b.Action
			if slices.Contains(appRow, m.actions[k]) {
				out = append(out, fmt.Sprintf("%q of %s is the app's %s", k, b.Action, m.actions[k]))
			}
		}
	}
	return out
}
