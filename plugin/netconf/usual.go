package netconf

// parseUsual reads the configuration as runtimes write it. ok is false when the
// scanner is not sure; the result is then meaningless.
func parseUsual(stdin []byte) (_ NetConf, ok bool) {
	conf := defaults()
	s := &scanner{in: stdin}
	top := fields{known: []string{
		"cniVersion", "name", "type", "vethPrefix", "mtu", "podSGEnforcingMode", "pluginLogFile", "pluginLogLevel",
		"runtimeConfig", "prevResult", "capabilities",
	}}
	texts := [...]*string{
		&conf.CNIVersion, &conf.Name, &conf.Type, &conf.VethPrefix, &conf.MTU, &conf.PodSGEnforcingMode,
		&conf.PluginLogFile, &conf.PluginLogLevel,
	}
	s.object(func(key string) {
		switch i := top.at(s, key); {
		case i < 0:
			s.skip(0)
		case i < len(texts):
			*texts[i] = s.text()
		case key == "runtimeConfig":
			s.runtimeConfig(&conf.RuntimeConfig)
		case key == "prevResult":
			conf.RawPrevResult = s.raw()
		default:
			s.giveUp() // capabilities reach a plugin through runtimeConfig, not as such
		}
	})
	s.end()
	return conf, !s.stuck
}

func (s *scanner) runtimeConfig(out *RuntimeConfig) {
	level := fields{known: []string{AnnotationCapability}}
	s.object(func(key string) {
		if level.at(s, key) < 0 {
			s.skip(0)
			return
		}
		out.PodAnnotations = map[string]string{}
		s.object(func(key string) { out.PodAnnotations[key] = s.text() })
	})
}
