// The Chromium that the browser tests use: the system's own, or one from an environment variable. We do not download
// one.
import { existsSync } from "node:fs"
import process from "node:process"

const places = [
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/usr/bin/google-chrome-stable"
]

/** Path of a Chromium; undefined if none is installed. */
export const chromiumPath = (): string | undefined => {
  const named = process.env["TOLLKEEPER_TEST_CHROMIUM"]
  return [...(named === undefined ? [] : [named]), ...places].find((path) => existsSync(path))
}

export const howToGetOne =
  "no Chromium is to be had here: install Debian's chromium, or name one in TOLLKEEPER_TEST_CHROMIUM"
