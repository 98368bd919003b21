/**
 * The parts of a server's URL that may be shown: no user, password or parameters. Undefined for an unreadable URL, and
 * for one whose password has an unencoded `/`, `?` or `#`: it ends the host, so the other parts contain the rest of it.
 */
export const readServerUrl = (text: string) => {
  if (!URL.canParse(text)) return undefined
  const { hash, host, hostname, pathname, port, search } = new URL(text)
  return `${pathname}${search}${hash}`.includes("@") ? undefined : { host, hostname, pathname, port }
}
