"""Audits of pronoun resolution: to which of two people does a pronoun refer, according to an answer?"""
