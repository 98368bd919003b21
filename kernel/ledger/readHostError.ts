// The code and the first words of a host error. Pure.
/** Maximum length of the excerpt of the host's message. */
const detailCharactersMax = 300

/** `Error(Type, Code)` of a host error, and the first plain text of its event log. */
export const readHostError = (error: string): { readonly code: string; readonly detail: string } => {
  const code = /Error\([A-Za-z]+, #?[A-Za-z0-9]+\)/.exec(error)?.[0] ?? "Error(Unknown, Unknown)"
  const said = /data:\[?"([^"]{1,200})"/.exec(error)?.[1] ?? ""
  return { code, detail: said.slice(0, detailCharactersMax) }
}
