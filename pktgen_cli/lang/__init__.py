"""Text to syntax tree: lexer, parser, and constant expressions.

Knows no protocol, no function and no socket: any name followed by parentheses is a
`Call`, whose meaning the compiler looks up.
"""
