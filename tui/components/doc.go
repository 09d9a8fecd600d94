// Package components are the parts that pages are built of: tables, panes, charts, maps,
// logs and forms. They are pure: drawing reads the value and the size it is given, and
// returns exactly that many lines, none wider. Strings that come from a node are made
// safe (daemon/fleet/show) before they come here; what is drawn is clipped by the width
// that it takes on a terminal.
package components
