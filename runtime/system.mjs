// On which systems the program runs, said before anything is opened. Linux is what every test runs on. macOS has all
// that the program stands on, but no machine here has run it there. Windows is refused: it can neither be told to stop
// in good order (a signal ends a process there at once), nor does it keep a folder for one user by its mode, on which
// the database and the keys of the state folder rest.

/** Why the program does not run on this system, and what to do; undefined where it does. */
export const systemFault = (platform) => {
  if (platform === "linux" || platform === "darwin") return undefined
  return platform === "win32"
    ? "Windows itself is not supported: a stop would cut payments off, and its folders cannot be closed to others by " +
        "mode; run it in WSL 2 (`wsl --install`), where it is Linux"
    : `${platform} is not supported; run it on Linux, or on macOS`
}

/** Whether the system is one that the tests run on; the other is told so once, at a start. */
export const isTested = (platform) => platform === "linux"
