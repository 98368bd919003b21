// The Chromium that the browser tests drive: the system's own, or one that an environment variable names. None is
// downloaded here.
import { existsSync } from "node:fs"
import process from "node:process"

const places = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable"
]

/** Its path; undefined when there is none. */
export const chromiumPath = (): string | undefined => {
  const named = process.env["TOLLKEEPER_TEST_CHROMIUM"]
  return [...(named === undefined ? [] : [named]), ...places].find((path) => existsSync(path))
}

export const howToGetOne =
  "no Chromium is to be had here: install Debian's chromium, or name one in TOLLKEEPER_TEST_CHROMIUM"
