// The parts of a database server's URL that a log or a command may show: no user, password or parameters. Pure.

/**
 * Undefined for an unreadable URL, and for one whose password has an unencoded `/`, `?` or `#`: it ends the host, so
 * the other parts contain the rest of it.
 */
export const readServerUrl = (text: string) => {
  if (!URL.canParse(text)) return undefined
  const { hash, host, hostname, pathname, port, search } = new URL(text)
  return `${pathname}${search}${hash}`.includes("@") ? undefined : { host, hostname, pathname, port }
}
